package main

import (
	"reflect"
	"testing"
)

func TestPairLine(t *testing.T) {
	const out = `BenchmarkPreparePairs/1-GPU-2         	     100	   2320588 ns/op	   1141093 prepare-p50-ns	  15144530 prepare-p99-ns	    239928 release-p50-ns	  15077169 release-p99-ns
BenchmarkPreparePairs/8-pairs-16       	     100	  32674174 ns/op	   9.5 prepare-p50-ns	  92846170 prepare-p99-ns	  12013829 release-p50-ns	  99504837 release-p99-ns
`
	var got [][]string
	for _, m := range pairLine.FindAllStringSubmatch(out, -1) {
		got = append(got, m[1:])
	}
	want := [][]string{{"1-GPU", "1141093", "15144530", "239928", "15077169"}, {"8-pairs", "9.5", "92846170", "12013829", "99504837"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNICLine(t *testing.T) {
	const out = `goos: linux
BenchmarkDescribe-2   	      20	 109676072 ns/op	     12210 reads/op
BenchmarkMoveNIC/there-16  	      20	  17398815 ns/op
BenchmarkMoveNIC/back  	      20	  1.5 ns/op
`
	var got [][]string
	for _, m := range nicLine.FindAllStringSubmatch(out, -1) {
		got = append(got, m[1:])
	}
	want := [][]string{{"Describe", "109676072", "12210"}, {"MoveNIC/there", "17398815", ""}, {"MoveNIC/back", "1.5", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
