package machine

import (
	"slices"
	"strings"
	"testing"
)

const gib = 1 << 30

func volta(usable uint64) GPU {
	return GPU{ComputeCapability: Version{7, 0}, Memory: Memory{Total: usable + gib, Reserved: gib}}
}

func TestShares(t *testing.T) {
	small := Size{Name: "small", Kind: KindMPS, Memory: 10 * gib, Compute: 25}
	slice := Size{Name: "slice", Kind: KindTimeSlice, Memory: 4 * gib}
	quarter := Size{Name: "quarter", Kind: KindTimeSlice, Clients: 4}
	partitioned, old, function := volta(16*gib), volta(16*gib), volta(16*gib)
	partitioned.MIG.Enabled = true
	old.ComputeCapability = Version{6, 1}
	function.Address.Function = 1
	for name, test := range map[string]struct {
		gpu   GPU
		sizes []Size
		want  []string
	}{
		"no sizes":          {volta(16 * gib), nil, []string{"mps-00-00", "timeslice-00-00"}},
		"sizes":             {volta(16 * gib), []Size{slice, small}, []string{"mps-00-00", "mps-00-00-small", "timeslice-00-00", "timeslice-00-00-slice"}},
		"all of the memory": {volta(10 * gib), []Size{small}, []string{"mps-00-00", "mps-00-00-small", "timeslice-00-00"}},
		"too large":         {volta(10*gib - 1), []Size{small, slice}, []string{"mps-00-00", "timeslice-00-00", "timeslice-00-00-slice"}},
		"memory unknown":    {GPU{ComputeCapability: Version{12, 1}}, []Size{small, slice}, []string{"mps-00-00", "timeslice-00-00"}},
		"quarters":          {volta(4 * MinShare), []Size{quarter}, []string{"mps-00-00", "timeslice-00-00", "timeslice-00-00-quarter"}},
		"no quarters":       {volta(4*MinShare - 1), []Size{quarter}, []string{"mps-00-00", "timeslice-00-00"}},
		"quarter unknown":   {GPU{ComputeCapability: Version{12, 1}}, []Size{quarter}, []string{"mps-00-00", "timeslice-00-00"}},
		"in MIG mode":       {partitioned, []Size{small}, nil},
		"before Volta":      {old, []Size{small, slice}, []string{"timeslice-00-00", "timeslice-00-00-slice"}},
		"a function":        {function, []Size{small}, []string{"mps-00-00-1", "mps-00-00-1-small", "timeslice-00-00-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Machine{GPUs: []GPU{test.gpu}, Sharing: Sharing{Sizes: test.sizes}}
			var got []string
			for _, d := range m.Devices() {
				if !d.Kind.Shared() {
					continue
				}
				got = append(got, d.Name)
				if found, ok := m.Device(d.Name); !ok || found != d {
					t.Errorf("%s by its name: %+v, %t", d.Name, found, ok)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestProtocolAndClients(t *testing.T) {
	for _, test := range []struct {
		driver   Driver
		slices   int // the administrator's
		protocol int
		clients  int
		turns    int
	}{
		{Driver{Version: "550.163.01", CUDA: Version{12, 4}}, 0, 2, 48, 16},
		{Driver{Version: "580.65.06", CUDA: Version{13, 0}}, 4, 2, 60, 4},
		{Driver{Version: "614.99", CUDA: Version{13, 3}}, 1, 2, 60, 1},
		{Driver{Version: "615.10", CUDA: Version{13, 4}}, 0, 3, 60, 16},
		{Driver{Version: "r615-beta"}, 0, 2, 48, 16},
		{Driver{}, 0, 2, 48, 16},
	} {
		m := Machine{Driver: test.driver, Sharing: Sharing{TimeSliceClients: test.slices}}
		if p, mps, turns := m.Driver.MPSProtocol(), m.Clients(KindMPS), m.Clients(KindTimeSlice); p != test.protocol || mps != test.clients || turns != test.turns {
			t.Errorf("driver %+v: protocol %d, %d clients, %d time slices", test.driver, p, mps, turns)
		}
	}
}

// The driver's own limits cover every process of a container, however it shares; those of
// MPS, with namespaces too, only those that let it. A GPU has them or not, whatever the
// driver's branch.
func TestEnforces(t *testing.T) {
	for name, test := range map[string]struct {
		unified, limits bool
		mps, turns      Enforcement
	}{
		"both":            {true, true, EnforcementStrict, EnforcementStrict},
		"cgroup v1":       {false, true, EnforcementBestEffort, EnforcementNone},
		"not of this GPU": {true, false, EnforcementBestEffort, EnforcementNone},
	} {
		m := Machine{CgroupV2: test.unified, Driver: Driver{Version: "615.10"}, GPUs: []GPU{{LimitsCgroups: !test.limits}, {LimitsCgroups: test.limits}}}
		if mps, turns := m.Enforces(&m.GPUs[1], KindMPS), m.Enforces(&m.GPUs[1], KindTimeSlice); mps != test.mps || turns != test.turns {
			t.Errorf("%s: MPS %s, time slices %s", name, mps, turns)
		}
	}
}

func TestSizesAreValidated(t *testing.T) {
	good := Size{Name: "small", Kind: KindMPS, Memory: MinShare, Compute: 100}
	with := func(change func(*Size)) []Size {
		size := good
		change(&size)
		return []Size{size}
	}
	for name, test := range map[string]struct {
		sharing Sharing
		want    []string // parts of the message; none means that it is valid
	}{
		"nothing":     {Sharing{}, nil},
		"two":         {Sharing{Sizes: []Size{good, {Name: "s-2", Kind: KindTimeSlice, Memory: gib}}}, nil},
		"longest":     {Sharing{Sizes: with(func(s *Size) { s.Name = strings.Repeat("a", 40) })}, nil},
		"no name":     {Sharing{Sizes: with(func(s *Size) { s.Name = "" })}, []string{`size ""`, "name"}},
		"too long":    {Sharing{Sizes: with(func(s *Size) { s.Name = strings.Repeat("a", 41) })}, []string{"name", "40"}},
		"upper case":  {Sharing{Sizes: with(func(s *Size) { s.Name = "Small" })}, []string{`size "Small"`, "lower-case"}},
		"a function":  {Sharing{Sizes: with(func(s *Size) { s.Name = "1-small" })}, []string{"name", "want a letter"}},
		"dash last":   {Sharing{Sizes: with(func(s *Size) { s.Name = "small-" })}, []string{"no dash last"}},
		"twice":       {Sharing{Sizes: []Size{good, {Name: "small", Kind: KindTimeSlice, Memory: gib}}}, []string{`size "small"`, "twice"}},
		"kind":        {Sharing{Sizes: with(func(s *Size) { s.Kind = KindGPU })}, []string{`kind: "gpu"`, "want mps or timeslice"}},
		"memory":      {Sharing{Sizes: with(func(s *Size) { s.Memory-- })}, []string{"memory: 1048575", "1Mi"}},
		"percentage":  {Sharing{Sizes: with(func(s *Size) { s.Compute = 101 })}, []string{"compute: 101", "to 100"}},
		"negative":    {Sharing{Sizes: with(func(s *Size) { s.Compute = -1 })}, []string{"compute: -1"}},
		"no compute":  {Sharing{Sizes: with(func(s *Size) { s.Kind = KindTimeSlice })}, []string{"compute: 100", "leave it out"}},
		"clients":     {Sharing{Sizes: []Size{{Name: "turn", Kind: KindTimeSlice, Clients: 4}}}, nil},
		"no clients":  {Sharing{Sizes: []Size{{Name: "turn", Kind: KindTimeSlice, Clients: -1}}}, []string{"clients: -1", "1 at least"}},
		"nothing set": {Sharing{Sizes: []Size{{Name: "turn", Kind: KindTimeSlice}}}, []string{"memory: 0 bytes", "1Mi"}},
		"MPS clients": {Sharing{Sizes: with(func(s *Size) { s.Clients = 4 })}, []string{"clients: 4", "leave it out"}},
		"few clients": {Sharing{TimeSliceClients: -1}, []string{"time slices: -1 clients"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.sharing.Validate()
			if (err != nil) != (test.want != nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
		})
	}
}

// The longest names must be DNS labels: 63 characters.
func TestLongestDeviceName(t *testing.T) {
	gpu := volta(16 * gib)
	gpu.Address = Address{Domain: 0xffff, Bus: 0xff, Device: 0x1f, Function: 7}
	m := Machine{GPUs: []GPU{gpu}, Sharing: Sharing{Sizes: []Size{{Name: strings.Repeat("a", MaxSizeName), Kind: KindTimeSlice, Memory: gib}}}}
	longest := 0
	for _, d := range m.Devices() {
		longest = max(longest, len(d.Name))
	}
	if longest != 63 {
		t.Errorf("the longest name has %d characters", longest)
	}
}

func TestWithoutMPSOnlyTimeSlicesAreOffered(t *testing.T) {
	m := Machine{
		GPUs:    []GPU{{UUID: "a", Address: Address{Bus: 1}, ComputeCapability: Version{Major: 9}, Memory: Memory{Total: 80 << 30}}},
		Sharing: Sharing{WithoutMPS: true},
	}
	if _, ok := m.Device("mps-01-00"); ok {
		t.Error("MPS is offered")
	}
	if _, ok := m.Device("timeslice-01-00"); !ok {
		t.Error("time slices are not offered")
	}
}

// A claim may have been given a share of a size that is no longer offered.
func TestEarlierSize(t *testing.T) {
	volta := GPU{UUID: "a", Address: Address{Bus: 0x1b}, ComputeCapability: Version{Major: 7}, Memory: Memory{Total: 16 * gib}}
	pascal := GPU{UUID: "b", Address: Address{Bus: 0x43}, ComputeCapability: Version{Major: 6}, Memory: Memory{Total: 16 * gib}}
	migMode := GPU{UUID: "c", Address: Address{Bus: 0x52}, ComputeCapability: Version{Major: 9}, Memory: Memory{Total: 80 * gib}, MIG: MIG{Capable: true, Enabled: true}}
	m := Machine{GPUs: []GPU{volta, pascal, migMode}, Sharing: Sharing{Sizes: []Size{{Name: "small", Kind: KindMPS, Memory: gib}}}}
	for name, want := range map[string]string{
		"mps-1b-00-small": "small", "mps-1b-00-large": "large", "timeslice-1b-00-small": "small", "timeslice-43-00-a": "a",
		"mps-1b-00-" + strings.Repeat("a", MaxSizeName):   strings.Repeat("a", MaxSizeName),
		"mps-1b-00-" + strings.Repeat("a", MaxSizeName+1): "",
		"mps-43-00-large": "", "mps-52-00-large": "", "timeslice-52-00-a": "", "mps-1b-00-1": "", "mps-1b-00-": "", "gpu-1b-00-large": "", "mps-1b-00-Large": "",
	} {
		d, ok := m.Device(name)
		if ok != (want != "") || ok && (d.Name != name || d.Size == nil || d.Size.Name != want || d.Size.Kind != d.Kind) {
			t.Errorf("%s: %+v, %t", name, d, ok)
		}
	}
	if d, _ := m.Device("mps-1b-00-small"); d.Size.Memory != gib {
		t.Errorf("one that is offered: %+v", d.Size)
	}
}
