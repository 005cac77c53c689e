package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Environment variables with what the administrator says of shares, for every
// command in the agent's container: --share with spaces between, --time-slice-clients
// and --mps-socket, of which empty is a value.
const (
	sharesVariable           = "DOVETAIL_SHARES"
	timeSliceClientsVariable = "DOVETAIL_TIME_SLICE_CLIENTS"
	mpsSocketVariable        = "DOVETAIL_MPS_SOCKET"
)

// sharing is what the administrator says of shares, as flags.
type sharing struct {
	shares           []string
	timeSliceClients string
	mpsSocket        string
}

func (s *sharing) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.shares, "share", strings.Fields(os.Getenv(sharesVariable)),
		"a size of share to offer by a name of its own: name=small,kind=mps,memory=10Gi,compute=25 (kind mps or timeslice; compute in percent, for mps); once for each size (default: $"+sharesVariable+", with spaces between)")
	flags.StringVar(&s.timeSliceClients, "time-slice-clients", fromEnvironment(timeSliceClientsVariable, strconv.Itoa(machine.DefaultTimeSliceClients)),
		fmt.Sprintf("how many claims at most have a time slice of one GPU (default: $%s, or %d)", timeSliceClientsVariable, machine.DefaultTimeSliceClients))
	otherwise := mps.Socket(mps.Dir)
	socket, ok := os.LookupEnv(mpsSocketVariable)
	if !ok {
		socket = otherwise
	}
	flags.StringVar(&s.mpsSocket, "mps-socket", socket,
		"socket of dovetail-mps, which looks after MPS and time slices; empty: it is not installed, and no shares by MPS are offered (default: $"+mpsSocketVariable+", or "+otherwise+")")
	flags.Lookup("share").DefValue = "[]" // as those below; of an array pflag takes this for none
	defaultsInText(flags, "time-slice-clients", "mps-socket")
}

// open reaches who looks after shares; it need not be there yet.
func (s *sharing) open() (hardware.Sharing, error) {
	if s.mpsSocket == "" {
		return mps.None{}, nil
	}
	return mps.New(s.mpsSocket)
}

// parse says which flag or part of it is wrong, and what would be right.
func (s *sharing) parse() (machine.Sharing, error) {
	clients, err := strconv.ParseInt(s.timeSliceClients, 10, 32)
	if err != nil || clients < 1 {
		return machine.Sharing{}, fmt.Errorf("--time-slice-clients: %q: want a number, 1 at least", s.timeSliceClients)
	}
	parsed := machine.Sharing{TimeSliceClients: int(clients), WithoutMPS: s.mpsSocket == ""}
	for _, share := range s.shares {
		size, err := parseSize(share)
		if err != nil {
			return machine.Sharing{}, fmt.Errorf("--share=%s: %w", share, err)
		}
		parsed.Sizes = append(parsed.Sizes, size)
	}
	if err := parsed.Validate(); err != nil {
		return machine.Sharing{}, fmt.Errorf("--share: %w", err)
	}
	return parsed, nil
}

var sizeFields = []string{"name", "kind", "memory", "compute"}

// parseSize reads "name=small,kind=mps,memory=10Gi,compute=25" in any order; compute
// can be left out.
func parseSize(s string) (machine.Size, error) {
	fields := map[string]string{}
	for field := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(field, "=")
		switch _, twice := fields[name]; {
		case !ok || value == "":
			return machine.Size{}, fmt.Errorf("%q has no value: want name=…,kind=…,memory=…,compute=…", field)
		case !slices.Contains(sizeFields, name):
			return machine.Size{}, fmt.Errorf("%s: is not known: want %s", name, strings.Join(sizeFields, ", "))
		case twice:
			return machine.Size{}, fmt.Errorf("%s: is there twice", name)
		}
		fields[name] = value
	}
	for _, name := range sizeFields[:3] {
		if fields[name] == "" {
			return machine.Size{}, fmt.Errorf("%s: is missing", name)
		}
	}
	size := machine.Size{Name: fields["name"], Kind: machine.Kind(fields["kind"])}
	memory, err := resource.ParseQuantity(fields["memory"])
	if err != nil || memory.Sign() < 0 || memory.CmpInt64(memory.Value()) != 0 {
		return machine.Size{}, fmt.Errorf("memory: %q: want bytes, as 10Gi or 512Mi", fields["memory"])
	}
	size.Memory = uint64(memory.Value())
	if compute, ok := fields["compute"]; ok {
		if size.Compute, err = strconv.Atoi(compute); err != nil {
			return machine.Size{}, fmt.Errorf("compute: %q: want a percentage, as 25", compute)
		}
	}
	return size, nil
}
