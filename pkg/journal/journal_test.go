package journal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

var example = Entry{
	Claim:  Claim{Namespace: "team-a", Name: "train", UID: "0b7c"},
	BootID: "boot-1",
	Holds:  []string{"gpu-1b-00"},
	Detail: json.RawMessage(`{"devices":[]}`),
	Steps:  []Step{{Intent: json.RawMessage(`{"kind":"x"}`)}, {Intent: json.RawMessage(`{"kind":"y"}`), Outcome: json.RawMessage(`{"done":true}`)}},
}

func open(t *testing.T) (*Journal, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "claims")
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j, dir
}

func TestPutGetDelete(t *testing.T) {
	j, _ := open(t)
	if _, err := j.Get("0b7c"); !errors.Is(err, failure.Absent) {
		t.Errorf("before: %v", err)
	}
	if err := j.Put(&example); err != nil {
		t.Fatal(err)
	}
	got, err := j.Get("0b7c")
	if err != nil || !reflect.DeepEqual(got, &example) {
		t.Errorf("got %+v, %v", got, err)
	}
	for range 2 {
		if err := j.Delete("0b7c"); err != nil {
			t.Error(err)
		}
	}
	if _, err := j.Get("0b7c"); !errors.Is(err, failure.Absent) {
		t.Errorf("after: %v", err)
	}
}

func TestAnotherProcessIsSeen(t *testing.T) {
	mine, dir := open(t)
	theirs, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Put(&example); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Get("0b7c"); err != nil {
		t.Error(err)
	}
	changed := *example.Clone()
	changed.BootID = "boot-2"
	if err := theirs.Put(&changed); err != nil {
		t.Fatal(err)
	}
	if got, err := mine.Get("0b7c"); err != nil || got.BootID != "boot-2" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := theirs.Delete("0b7c"); err != nil {
		t.Fatal(err)
	}
	if records, err := mine.List(); err != nil || len(records) != 0 {
		t.Errorf("records %v, %v", records, err)
	}
}

func TestDamagedAndForeignRecords(t *testing.T) {
	whole, err := Marshal(&example)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content string
		class   error
	}{
		"whole":            {string(whole), nil},
		"unknown field":    {strings.Replace(string(whole), `"bootID"`, `"later":{"a":1},"bootID"`, 1), nil},
		"empty":            {"", failure.Corrupt},
		"zeros":            {strings.Repeat("\x00", 64), failure.Corrupt},
		"truncated":        {string(whole[:len(whole)/2]), failure.Corrupt},
		"trailing garbage": {string(whole) + "\x00\x00", failure.Corrupt},
		"two records":      {string(whole) + string(whole), failure.Corrupt},
		"another object":   {`{"kind":"Pod"}`, failure.Corrupt},
		"no claim":         {`{"version":1}`, failure.Corrupt},
		"another claim's":  {strings.Replace(string(whole), `"uid":"0b7c"`, `"uid":"0b7d"`, 1), failure.Corrupt},
		"newer version":    {strings.Replace(string(whole), `"version":1`, `"version":2`, 1), failure.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			j, dir := open(t)
			if err := os.WriteFile(filepath.Join(dir, "0b7c.json"), []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			records, err := j.List()
			if err != nil || len(records) != 1 || records[0].UID != "0b7c" {
				t.Fatalf("records %v, %v", records, err)
			}
			r := records[0]
			if failure.ClassOf(r.Err) != test.class {
				t.Errorf("error %v", r.Err)
			}
			if wantHolds := test.class != failure.Corrupt; (r.Entry != nil) != wantHolds || wantHolds && !reflect.DeepEqual(r.Entry.Holds, example.Holds) {
				t.Errorf("entry %+v", r.Entry)
			}
		})
	}
}

func TestRemovedDirectoryIsMadeAgain(t *testing.T) {
	j, dir := open(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if records, err := j.List(); err != nil || len(records) != 0 {
		t.Errorf("records %v, %v", records, err)
	}
	if err := j.Put(&example); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Get("0b7c"); err != nil {
		t.Error(err)
	}
}

func TestSetAsideKeepsTheFile(t *testing.T) {
	j, dir := open(t)
	if err := os.WriteFile(filepath.Join(dir, "0b7c.json"), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	aside, err := j.SetAside("0b7c")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(aside); err != nil || string(content) != "?" {
		t.Errorf("set aside: %q, %v", content, err)
	}
	if records, err := j.List(); err != nil || len(records) != 0 {
		t.Errorf("records %v, %v", records, err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	whole, err := Marshal(&example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":2,"claim":{"uid":"u"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		entry, err := Unmarshal(content)
		if err == nil && entry.Claim.UID == "" {
			t.Error("accepted a record without a claim")
		}
		if err != nil && failure.ClassOf(err) == nil {
			t.Errorf("error without class: %v", err)
		}
	})
}
