package nvml

import (
	"encoding/binary"
	"errors"
	"testing"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// stubborn is a GPU whose MIG mode does not come into force.
type stubborn struct {
	api.Device
	ret, activation api.Return
	pending         int
	calls           int
}

func (d *stubborn) GetMigMode() (now, pending int, ret api.Return) {
	return api.DEVICE_MIG_DISABLE, d.pending, api.SUCCESS
}

func (d *stubborn) SetMigMode(mode int) (activation, ret api.Return) {
	d.calls++
	if d.ret == api.SUCCESS {
		d.pending = mode
	}
	return d.activation, d.ret
}

func TestSwitchModeLeavesNothingPending(t *testing.T) {
	for name, c := range map[string]struct {
		ret, activation api.Return
		want            error
		calls           int
	}{
		"used":            {api.SUCCESS, api.ERROR_IN_USE, failure.Busy, 2},
		"used, at once":   {api.ERROR_IN_USE, api.SUCCESS, failure.Busy, 1},
		"needs a reset":   {api.SUCCESS, api.ERROR_RESET_REQUIRED, failure.Unsupported, 2},
		"not permitted":   {api.ERROR_NO_PERMISSION, api.SUCCESS, nil, 1},
		"something else":  {api.SUCCESS, api.ERROR_UNKNOWN, nil, 2},
		"lost meanwhile":  {api.ERROR_GPU_IS_LOST, api.SUCCESS, failure.Absent, 1},
		"not for its kin": {api.ERROR_NOT_SUPPORTED, api.SUCCESS, failure.Unsupported, 1},
	} {
		d := &stubborn{ret: c.ret, activation: c.activation}
		err := partitioned{device: d, uuid: "GPU-1"}.switchMode(true)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		var f *failed
		if errors.As(err, &f) {
			err = problem("GPU-1", f.call, f.ret)
		}
		if class := failure.ClassOf(err); class != c.want {
			t.Errorf("%s: %v has class %v, want %v", name, err, class, c.want)
		}
		if d.pending != api.DEVICE_MIG_DISABLE || d.calls != c.calls {
			t.Errorf("%s: mode %d is pending after %d calls, want 0 after %d", name, d.pending, d.calls, c.calls)
		}
	}
}

// generation is a GPU whose driver may say whether its MIG mode switches at once.
type generation struct {
	api.Device
	call  api.Return // what the call for fields answers
	field api.Return // and what it says of the one
	value uint32
	major int
}

func (g generation) GetFieldValues(values []api.FieldValue) api.Return {
	values[0].NvmlReturn = uint32(g.field)
	binary.NativeEndian.PutUint32(values[0].Value[:], g.value)
	return g.call
}

func (g generation) GetCudaComputeCapability() (major, minor int, ret api.Return) {
	return g.major, 0, api.SUCCESS
}

func TestOnDemand(t *testing.T) {
	for _, c := range []struct {
		gpu  generation
		want bool
	}{
		{generation{field: api.SUCCESS, value: 1, major: 8}, true},
		{generation{field: api.SUCCESS, value: 0, major: 9}, false},
		{generation{field: api.ERROR_NOT_SUPPORTED, major: 8}, false},
		{generation{field: api.ERROR_NOT_SUPPORTED, major: 9}, true},
		{generation{field: api.ERROR_INVALID_ARGUMENT, major: 12}, true},
		{generation{call: api.ERROR_NOT_SUPPORTED, major: 9}, true},
		{generation{call: api.ERROR_INVALID_ARGUMENT, value: 1, major: 8}, false},
		{generation{call: api.ERROR_NO_PERMISSION, major: 9}, true},
	} {
		if got, err := onDemand(c.gpu); err != nil || got != c.want {
			t.Errorf("%+v: %t, %v", c.gpu, got, err)
		}
	}
	for _, lost := range []generation{{field: api.ERROR_GPU_IS_LOST}, {call: api.ERROR_GPU_IS_LOST}} {
		if _, err := onDemand(lost); codeOf(err) != api.ERROR_GPU_IS_LOST {
			t.Errorf("a lost GPU: %v", err)
		}
	}
}

// A driver without fields leaves a GPU's health to the Xids that were seen, which is no
// fault.
func TestHealthWithoutFields(t *testing.T) {
	for _, ret := range []api.Return{api.ERROR_NOT_SUPPORTED, api.ERROR_INVALID_ARGUMENT, api.ERROR_NO_PERMISSION} {
		r := &reader{gpus: New(Options{}), device: generation{call: ret}}
		r.gpu.UUID = "GPU-1"
		r.gpus.xids["GPU-1"] = 48
		r.health()
		if len(r.faults) != 0 || r.gpu.Health.Reason != machine.FaultXid {
			t.Errorf("%v: %+v, faults %+v", ret, r.gpu.Health, r.faults)
		}
	}
}
