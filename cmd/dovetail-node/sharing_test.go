package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func parseSharing(t *testing.T, args ...string) (machine.Sharing, error) {
	t.Helper()
	var s sharing
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.parse()
}

func TestSharing(t *testing.T) {
	small := machine.Size{Name: "small", Kind: machine.KindMPS, Memory: 10 << 30, Compute: 25}
	turn := machine.Size{Name: "turn", Kind: machine.KindTimeSlice, Memory: 1536 << 20}
	for name, test := range map[string]struct {
		args []string
		want machine.Sharing
	}{
		"nothing": {nil, machine.Sharing{TimeSliceClients: 16}},
		"no MPS":  {[]string{"--mps-socket="}, machine.Sharing{TimeSliceClients: 16, WithoutMPS: true}},
		"clients": {[]string{"--time-slice-clients=1"}, machine.Sharing{TimeSliceClients: 1}},
		"sizes": {
			[]string{"--share=name=small,kind=mps,memory=10Gi,compute=25", "--share=memory=1.5Gi,name=turn,kind=timeslice"},
			machine.Sharing{TimeSliceClients: 16, Sizes: []machine.Size{small, turn}},
		},
	} {
		if got, err := parseSharing(t, test.args...); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	t.Setenv(sharesVariable, " name=small,kind=mps,memory=10Gi,compute=25  name=turn,kind=timeslice,memory=1536Mi ")
	t.Setenv(timeSliceClientsVariable, "3")
	t.Setenv(mpsSocketVariable, "")
	if got, err := parseSharing(t); err != nil || !reflect.DeepEqual(got, machine.Sharing{TimeSliceClients: 3, WithoutMPS: true, Sizes: []machine.Size{small, turn}}) {
		t.Errorf("from the environment: %+v, %v", got, err)
	}
}

func TestBadSharing(t *testing.T) {
	for share, want := range map[string]string{
		"":                                           `"" has no value`,
		"small":                                      `"small" has no value: want name=`,
		"name=":                                      `"name=" has no value`,
		"name=a,kind=mps":                            "memory: is missing",
		"kind=mps,memory=1Gi":                        "name: is missing",
		"name=a,memory=1Gi":                          "kind: is missing",
		"name=a,kind=mps,memory=1Gi,":                `"" has no value`,
		"name=a,kind=mps,memory=1Gi,cpu=1":           "cpu: is not known",
		"name=a,kind=mps,memory=1Gi,name=b":          "name: is there twice",
		"name=a,kind=mps,memory=1GB":                 `memory: "1GB"`,
		"name=a,kind=mps,memory=-1Gi":                `memory: "-1Gi"`,
		"name=a,kind=mps,memory=10m":                 `memory: "10m"`,
		"name=a,kind=mps,memory=0":                   "memory: 0 bytes are too few: want 1Mi at least",
		"name=a,kind=mps,memory=1,compute=x":         `compute: "x"`,
		"name=a,kind=mps,memory=1Gi,compute=101":     "compute: 101 is no percentage",
		"name=a,kind=timeslice,memory=1Gi,compute=1": "leave it out",
		"name=A,kind=mps,memory=1Gi":                 `size "A": name`,
		"name=a,kind=mig,memory=1Gi":                 `kind: "mig" is not known: want mps or timeslice`,
	} {
		if _, err := parseSharing(t, "--share="+share); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--share") {
			t.Errorf("%q: error %v", share, err)
		}
	}
	for _, clients := range []string{"0", "-1", "many", "", "99999999999"} {
		if _, err := parseSharing(t, "--time-slice-clients="+clients); err == nil || !strings.Contains(err.Error(), "--time-slice-clients") {
			t.Errorf("%q: error %v", clients, err)
		}
	}
}
