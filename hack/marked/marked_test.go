package marked

import "testing"

func TestReplace(t *testing.T) {
	const document = "a\n<!-- x:begin (by a tool) -->\nold\n<!-- x:end -->\nb\n"
	got, err := Replace(document, "x", "new\n")
	if want := "a\n<!-- x:begin (by a tool) -->\nnew\n<!-- x:end -->\nb\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Replace(document, "y", ""); err == nil {
		t.Error("no marks of that name, and no error")
	}
}
