package main

import (
	"reflect"
	"testing"
)

func TestControllerTable(t *testing.T) {
	out := []byte("goos: linux\nBenchmarkThousandNodes-2   \t      10\t 123456789 ns/op\t        71.25 MB-heap\t         2.000 writes/op\nPASS\n")
	tables, err := controllerTable(out)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"memory", "71 MB"}, {"from a changed class to its status, mean", "123 ms"}, {"API writes for each change", "2.0"}}
	if !reflect.DeepEqual(tables[0].rows, want) {
		t.Errorf("%v", tables[0].rows)
	}
	if _, err := controllerTable([]byte("--- SKIP: BenchmarkThousandNodes\n")); err == nil {
		t.Error("no figures, and no error")
	}
}
