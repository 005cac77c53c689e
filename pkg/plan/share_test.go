package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

const gib = 1 << 30

// volta is a machine with two GPUs that can be shared, of 80 GiB each, and one that
// is too old for MPS with limits.
func volta(driver string) *machine.Machine {
	gpu := func(uuid string, bus uint8, major int) machine.GPU {
		return machine.GPU{
			UUID: uuid, Address: machine.Address{Bus: bus}, ProductName: "GPU of " + uuid,
			ComputeCapability: machine.Version{Major: major}, Memory: machine.Memory{Total: 80 * gib},
		}
	}
	return &machine.Machine{
		Driver: machine.Driver{Version: driver},
		GPUs:   []machine.GPU{gpu("GPU-a", 0x1b, 9), gpu("GPU-b", 0x43, 9), gpu("GPU-old", 0x52, 6)},
	}
}

func TestShare(t *testing.T) {
	r := Result{Request: "r", Device: "mps-43-00", ShareID: "id", Memory: 10 * gib, Compute: 25}
	p, err := Prepare(Allocation{Results: []Result{r}}, volta("570.1"))
	if err != nil {
		t.Fatal(err)
	}
	set := []Member{{GPU: "GPU-b"}}
	want := Plan{
		Locks: []string{"gpu-43-00"},
		Joins: map[string]string{"gpu-43-00": "mps-43-00"},
		Steps: []Step{
			{Kind: SetComputeMode, GPU: "GPU-b", ComputeMode: machine.ComputeModeExclusiveProcess, ForMPS: true},
			{Kind: StartMPS, GPU: "GPU-b", Set: set},
		},
		Devices: []Device{{
			Request: "r", Name: "mps-43-00", Kind: machine.KindMPS, GPU: "GPU-b", ShareID: "id",
			Share: &Share{Kind: machine.KindMPS, Memory: 10 * gib, Threads: 25, Enforcement: machine.EnforcementBestEffort},
		}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got\n%+v, want\n%+v", p, want)
	}

	p, err = Prepare(Allocation{Results: []Result{r}}, volta("615.10"))
	if err != nil {
		t.Fatal(err)
	}
	want.Steps = append(want.Steps, Step{
		Kind: MakeNamespace, GPU: "GPU-b", Set: set, Namespace: "share-id", Request: "r",
		Limits: &Limits{Threads: 25, Memory: map[string]uint64{"GPU-b": 10 * gib}},
	})
	if !reflect.DeepEqual(p, want) {
		t.Errorf("with namespaces: got\n%+v, want\n%+v", p, want)
	}

	m := volta("615.10")
	m.CgroupV2, m.GPUs[1].LimitsCgroups = true, true
	if p, err = Prepare(Allocation{Results: []Result{r}}, m); err != nil {
		t.Fatal(err)
	}
	want.Devices[0].Share.Enforcement, want.Devices[0].Share.ByDriver = machine.EnforcementStrict, true
	if !reflect.DeepEqual(p, want) {
		t.Errorf("with limits of the driver: got\n%+v, want\n%+v", p, want)
	}
}

// What a share is given, and whether a hook limits its containers, is its own GPU's
// answer: of two GPUs one can lack what the other has. A partition's is never the driver's.
func TestEnforcementIsTheGPUs(t *testing.T) {
	m := volta("615.10")
	m.CgroupV2, m.GPUs[0].LimitsCgroups, m.GPUs[1].LimitsCgroups = true, true, false
	m.GPUs[1].MIG = quarters().GPUs[0].MIG
	results := []Result{
		{Request: "a", Device: "mps-1b-00", ShareID: "1", Memory: gib},
		{Request: "b", Device: "mps-43-00", ShareID: "2", Memory: gib},
	}
	p, err := Prepare(Allocation{Results: results}, m)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Share{
		{Kind: machine.KindMPS, Memory: gib, Enforcement: machine.EnforcementStrict, ByDriver: true},
		{Kind: machine.KindMPS, Memory: gib, Enforcement: machine.EnforcementBestEffort},
	} {
		if got := *p.Devices[i].Share; got != want {
			t.Errorf("%s: %+v, want %+v", results[i].Device, got, want)
		}
	}
	results[1].Config.Enforcement = machine.EnforcementStrict
	if _, err := Prepare(Allocation{Results: results}, m); failure.ClassOf(err) != failure.Unsupported ||
		!strings.Contains(err.Error(), "GPU GPU-b gives BestEffort (driver 615.10 does not limit what containers allocate of it)") {
		t.Errorf("Strict of the GPU that cannot: %v", err)
	}

	m.GPUs[1].LimitsCgroups = true
	shared := Config{Sharing: machine.KindMPS, MPS: MPSConfig{ThreadPercentage: 50}}
	p, err = Prepare(Allocation{Results: []Result{{Request: "part", Device: "mig-43-00-1g6gb-3", Config: shared}}}, m)
	if err != nil {
		t.Fatal(err)
	}
	if share := p.Devices[0].Share; share.ByDriver || share.Enforcement != machine.EnforcementBestEffort {
		t.Errorf("a partition whose processes share it: %+v", share)
	}
}

// One control daemon is over all GPUs that a claim shares, in their order, whatever the
// order of the claim is; a namespace is a request's.
func TestSharesOfSeveralGPUs(t *testing.T) {
	p, err := Prepare(Allocation{Results: []Result{
		{Request: "b", Device: "mps-43-00", ShareID: "1", Memory: gib},
		{Request: "b", Device: "mps-1b-00", ShareID: "2", Memory: gib},
		{Request: "a", Device: "mps-1b-00", ShareID: "3", Memory: 2 * gib},
	}}, volta("615.10"))
	if err != nil {
		t.Fatal(err)
	}
	set := []Member{{GPU: "GPU-a"}, {GPU: "GPU-b"}}
	exclusive := func(gpu string) Step {
		return Step{Kind: SetComputeMode, GPU: gpu, ComputeMode: machine.ComputeModeExclusiveProcess, ForMPS: true}
	}
	want := []Step{
		exclusive("GPU-a"), exclusive("GPU-b"), {Kind: StartMPS, GPU: "GPU-a", Set: set},
		{Kind: MakeNamespace, GPU: "GPU-a", Set: set, Namespace: "share-1", Request: "b", Limits: &Limits{Memory: map[string]uint64{"GPU-a": gib, "GPU-b": gib}}},
		{Kind: MakeNamespace, GPU: "GPU-a", Set: set, Namespace: "share-3", Request: "a", Limits: &Limits{Memory: map[string]uint64{"GPU-a": 2 * gib, "GPU-b": gib}}},
	}
	if !reflect.DeepEqual(p.Steps, want) {
		t.Errorf("got\n%+v, want\n%+v", p.Steps, want)
	}
}

func TestSharingADeviceThatOneClaimHas(t *testing.T) {
	m := volta("615.10")
	m.GPUs[1].MIG = quarters().GPUs[0].MIG
	shared := Config{Sharing: machine.KindMPS, MPS: MPSConfig{ThreadPercentage: 50}}
	p, err := Prepare(Allocation{Results: []Result{
		{Request: "whole", Device: "gpu-1b-00", Config: shared},
		{Request: "part", Device: "mig-43-00-1g6gb-3", Config: shared},
	}}, m)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []StepKind
	for _, s := range p.Steps {
		kinds = append(kinds, s.Kind)
	}
	if want := []StepKind{EnableMIG, MakeGPUInstance, MakeComputeInstance, StartMPS, SetComputeMode, StartMPS}; !reflect.DeepEqual(kinds, want) {
		t.Fatalf("steps %q, want %q", kinds, want)
	}
	if partition := p.Steps[3].Set[0].Partition; partition == nil || partition.Device != "mig-43-00-1g6gb-3" {
		t.Errorf("a control daemon over %+v", p.Steps[3].Set)
	}
	if len(p.Joins) > 0 || len(p.Holds) == 0 {
		t.Errorf("joins %v, holds %v", p.Joins, p.Holds)
	}
}

func TestTimeSlice(t *testing.T) {
	share := Result{Request: "r", Device: "timeslice-52-00", ShareID: "1", Memory: gib}
	p, err := Prepare(Allocation{Results: []Result{share}}, volta("570.1"))
	if err != nil || len(p.Steps) > 0 {
		t.Errorf("without an interval: %+v, %v", p.Steps, err)
	}
	share.Config.Interval = machine.TimeSliceLong
	p, err = Prepare(Allocation{Results: []Result{share}}, volta("570.1"))
	if want := []Step{{Kind: SetTimeSlice, GPU: "GPU-old", Interval: machine.TimeSliceLong, Request: "r"}}; err != nil || !reflect.DeepEqual(p.Steps, want) {
		t.Errorf("got %+v, %v", p.Steps, err)
	}
	if got := p.Devices[0].Share.Enforcement; got != machine.EnforcementNone {
		t.Errorf("enforcement %s", got)
	}
}

func TestShareRefuses(t *testing.T) {
	m := volta("570.1")
	m.GPUs[1].MIG, m.GPUs[1].LimitsCgroups = quarters().GPUs[0].MIG, true
	for name, test := range map[string]struct {
		result Result
		class  error
		words  string
	}{
		"the other strategy":         {Result{Device: "mps-1b-00", Config: Config{Sharing: machine.KindTimeSlice}}, failure.Invalid, "sharing.strategy"},
		"no strategy for a share":    {Result{Device: "mps-1b-00", Config: Config{Sharing: machine.KindGPU}}, failure.Invalid, "sharing.strategy"},
		"Strict turns of a GPU":      {Result{Device: "gpu-1b-00", Config: Config{Sharing: machine.KindTimeSlice, Enforcement: machine.EnforcementStrict}}, failure.Unsupported, "the nearest that works is None; or claim a share"},
		"a compute mode for a share": {Result{Device: "timeslice-1b-00", Config: Config{ComputeMode: "Default"}}, failure.Invalid, "computeMode: Default"},
		"limits for a share":         {Result{Device: "mps-1b-00", Config: Config{MPS: MPSConfig{ThreadPercentage: 5}}}, failure.Invalid, "request memory and compute"},
		"limits without MPS":         {Result{Device: "gpu-1b-00", Config: Config{MPS: MPSConfig{ThreadPercentage: 5}}}, failure.Invalid, "set sharing.strategy to MPS"},
		"more than there is":         {Result{Device: "gpu-1b-00", Config: Config{Sharing: machine.KindMPS, MPS: MPSConfig{Memory: 81 * gib}}}, failure.Invalid, "the most that works is 81920Mi"},
		"an interval for MPS":        {Result{Device: "mps-1b-00", Config: Config{Interval: machine.TimeSliceLong}}, failure.Invalid, "sharing.timeSlicing.interval: Long"},
		"an interval of a partition": {Result{Device: "mig-43-00-1g6gb-3", Config: Config{Sharing: machine.KindTimeSlice, Interval: machine.TimeSliceLong}}, failure.Invalid, "a whole GPU's"},
		"MPS before Volta":           {Result{Device: "gpu-52-00", Config: Config{Sharing: machine.KindMPS}}, failure.Unsupported, "use TimeSlicing"},
		"Strict in vain":             {Result{Device: "mps-1b-00", Memory: gib, Config: Config{Enforcement: machine.EnforcementStrict}}, failure.Unsupported, "the nearest that works is BestEffort"},
		"Strict without cgroups":     {Result{Device: "mps-43-00", Memory: gib, Config: Config{Enforcement: machine.EnforcementStrict}}, failure.Unsupported, "driver 570.1, containers in cgroup version 1), and Strict takes a driver that limits containers on that GPU, of branch 615 or later, and cgroup version 2"},
		"Strict for a time slice":    {Result{Device: "timeslice-1b-00", Memory: gib, Config: Config{Enforcement: machine.EnforcementStrict}}, failure.Unsupported, "GPU GPU-a gives None (driver 570.1,"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(Allocation{Results: []Result{test.result}}, m)
			if failure.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.words) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Who does not want limits gets none; what a share reserves it still reserves.
func TestEnforcementNone(t *testing.T) {
	p, err := Prepare(Allocation{Results: []Result{{
		Request: "r", Device: "mps-1b-00", ShareID: "1", Memory: gib, Compute: 10, Config: Config{Enforcement: machine.EnforcementNone},
	}}}, volta("615.1"))
	if err != nil {
		t.Fatal(err)
	}
	last := p.Steps[len(p.Steps)-1]
	if share := p.Devices[0].Share; share.Memory != 0 || share.Enforcement != machine.EnforcementNone || len(last.Limits.Memory) > 0 || last.Limits.Threads != 10 {
		t.Errorf("share %+v, limits %+v", share, last.Limits)
	}
}

func TestSuits(t *testing.T) {
	mps := Config{Sharing: machine.KindMPS, MPS: MPSConfig{ThreadPercentage: 50}}
	for _, test := range []struct {
		config Config
		kind   machine.Kind
		words  string // none: it does
	}{
		{Config{}, machine.KindMIG, ""},
		{mps, machine.KindGPU, ""},
		{mps, machine.KindMIG, ""},
		{mps, machine.KindMPS, "request memory and compute"},
		{mps, machine.KindTimeSlice, "claim a device of the other kind"},
		{Config{ComputeMode: machine.ComputeModeDefault}, machine.KindMIG, "computeMode"},
		{Config{ComputeMode: machine.ComputeModeDefault}, machine.KindTimeSlice, "computeMode"},
		{Config{LowPriority: true}, machine.KindGPU, "sharing.mps"},
		{Config{Interval: machine.TimeSliceLong}, machine.KindTimeSlice, ""},
		{Config{Interval: machine.TimeSliceLong}, machine.KindMPS, "sharing.timeSlicing.interval"},
		{Config{Interval: machine.TimeSliceLong}, machine.KindMIG, "sharing.timeSlicing.interval"},
		{Config{NIC: NICConfig{MTU: 9000}}, machine.KindRDMA, "mtu: 9000, but the interface stays with the host"},
		{Config{NIC: NICConfig{MTU: 9000}}, machine.KindNIC, ""},
	} {
		err := test.config.Suits(test.kind)
		switch {
		case test.words == "" && err != nil:
			t.Errorf("%+v on %s: %v", test.config, test.kind, err)
		case test.words != "" && (failure.ClassOf(err) != failure.Invalid || !strings.Contains(err.Error(), test.words)):
			t.Errorf("%+v on %s: %v, want %q", test.config, test.kind, err, test.words)
		}
	}
}
