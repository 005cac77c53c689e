package hardwaretest

import (
	"context"
	"errors"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// testMIGOthers: what others made is seen, in whatever state, and can be destroyed.
func testMIGOthers(t *testing.T, make func(*testing.T, string) Fixture) {
	g := divide(t, make(t, "dgx-h100"), 3)
	p := g.profile("3g.40gb")
	theirs, err := g.Machine.MakeGPUInstance(g.uuid, p.ID, &p.Placements[1])
	must(t, err)
	if got := g.check(); len(got) != 1 || got[0].ID != theirs.ID || len(got[0].ComputeInstances) != 0 {
		t.Errorf("an instance without compute instance is seen as %+v", got)
	}
	for range 2 {
		_, err := g.Machine.MakeComputeInstance(g.uuid, theirs.ID, 1)
		must(t, err)
	}
	if got := g.check(); len(got) != 1 || len(got[0].ComputeInstances) != 2 {
		t.Errorf("two small compute instances are seen as %+v", got)
	}
	if _, err := g.GPUs.MakeComputeInstance(t.Context(), g.uuid, theirs.ID); !errors.Is(err, failure.Conflict) {
		t.Errorf("a third that spans the instance: %v", err)
	}
	for id := range 2 {
		if err := g.GPUs.DestroyGPUInstance(t.Context(), g.uuid, theirs.ID); !errors.Is(err, failure.Conflict) {
			t.Errorf("destroying what has compute instances: %v", err)
		}
		must(t, g.GPUs.DestroyComputeInstance(t.Context(), g.uuid, theirs.ID, id))
	}
	g.destroy(theirs.ID)
	if got := g.check(); len(got) != 0 {
		t.Errorf("%+v are left", got)
	}
}

// testMIGErrors: each wrong argument has its class, and changes nothing.
func testMIGErrors(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	g := divide(t, f, 0)
	off := f.Machine.Spec().GPUs[1].UUID
	id, _ := g.makeWhole("2g.20gb", 2)
	p := g.profile("1g.10gb")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	type call struct {
		name string
		err  error
		want error
	}
	makeAt := func(ctx context.Context, uuid string, profile int, at machine.Placement) error {
		_, err := f.GPUs.MakeGPUInstance(ctx, uuid, profile, at)
		return err
	}
	compute := func(uuid string, id int) error {
		_, err := f.GPUs.MakeComputeInstance(t.Context(), uuid, id)
		return err
	}
	partitions := func(uuid string) error {
		_, err := f.GPUs.Partitions(t.Context(), uuid)
		return err
	}
	nobody, free := "GPU-00000000-0000-0000-0000-000000000000", p.Placements[0]
	for _, c := range []call{
		{"a GPU that is not there", partitions(nobody), failure.Absent},
		{"its mode", f.GPUs.SetMIGMode(t.Context(), nobody, true), failure.Absent},
		{"an instance on it", makeAt(t.Context(), nobody, p.ID, free), failure.Absent},
		{"one destroyed on it", f.GPUs.DestroyGPUInstance(t.Context(), nobody, 0), failure.Absent},
		{"a profile that is not there", makeAt(t.Context(), g.uuid, 1234, free), failure.Invalid},
		{"a placement that is not there", makeAt(t.Context(), g.uuid, p.ID, machine.Placement{Start: 7, Size: 1}), failure.Invalid},
		{"a placement of another size", makeAt(t.Context(), g.uuid, p.ID, machine.Placement{Start: 0, Size: 2}), failure.Invalid},
		{"MIG mode off", makeAt(t.Context(), off, p.ID, free), failure.Conflict},
		{"a second compute instance", compute(g.uuid, id), failure.Conflict},
		{"a compute instance nowhere", compute(g.uuid, id+1), failure.Absent},
		{"a compute instance with MIG mode off", compute(off, id), failure.Absent},
		{"destroying another compute instance", f.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, 1), failure.Absent},
		{"destroying one of another instance", f.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id+1, 0), failure.Absent},
		{"destroying another instance", f.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id+1), failure.Absent},
		{"destroying one with MIG mode off", f.GPUs.DestroyGPUInstance(t.Context(), off, id), failure.Absent},
		{"destroying before the compute instance", f.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id), failure.Conflict},
		{"a context that ended", makeAt(ended, g.uuid, p.ID, free), context.Canceled},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
	if got := g.check(); len(got) != 1 || got[0].ID != id {
		t.Errorf("after all that there are %+v", got)
	}
}

// testMIGWithout: a GPU without MIG has no partitions to speak of.
func testMIGWithout(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "l40s")
	uuid := f.Machine.Spec().GPUs[0].UUID
	_, partitions := f.GPUs.Partitions(t.Context(), uuid)
	_, instance := f.GPUs.MakeGPUInstance(t.Context(), uuid, 0, machine.Placement{Size: 8})
	for _, err := range []error{
		partitions, instance, f.GPUs.SetMIGMode(t.Context(), uuid, true), f.GPUs.DestroyGPUInstance(t.Context(), uuid, 0),
	} {
		if !errors.Is(err, failure.Unsupported) {
			t.Errorf("an L40S: %v", err)
		}
	}
}
