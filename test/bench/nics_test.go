package main

import (
	"reflect"
	"testing"
)

func TestNICLine(t *testing.T) {
	const out = `goos: linux
BenchmarkDescribeNICs-2   	      20	 109676072 ns/op	     12210 reads/op
BenchmarkMoveNIC/there-16  	      20	  17398815 ns/op
BenchmarkMoveNIC/back  	      20	  1.5 ns/op
`
	var got [][]string
	for _, m := range nicLine.FindAllStringSubmatch(out, -1) {
		got = append(got, m[1:])
	}
	want := [][]string{{"DescribeNICs", "109676072", "12210"}, {"MoveNIC/there", "17398815", ""}, {"MoveNIC/back", "1.5", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
