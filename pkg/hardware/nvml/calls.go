package nvml

import (
	"context"
	"errors"
	"time"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// failed is a call of NVML's that went wrong. with turns it into an error for others.
type failed struct {
	call string
	ret  api.Return
}

func (f *failed) Error() string { return explain(f.call, f.ret) }

// check is nil where the call succeeded.
func check(call string, ret api.Return) error {
	if ret == api.SUCCESS {
		return nil
	}
	return &failed{call: call, ret: ret}
}

// codeOf is the code behind an error of check's, or SUCCESS.
func codeOf(err error) api.Return {
	var f *failed
	if errors.As(err, &f) {
		return f.ret
	}
	return api.SUCCESS
}

// gpu is how errors name a GPU, and patience does.
func gpu(uuid string) string { return "GPU " + uuid }

// query asks the GPU with that UUID, as long as a query may take.
func query[T any](ctx context.Context, g *GPUs, uuid string, ask func(*session, api.Device) (T, error)) (T, error) {
	return within(ctx, g, g.options.Patience, uuid, ask)
}

// within asks the GPU with that UUID, and names it in the error. A GPU that does not
// answer is failure.Busy; its call goes on, and NVML cannot interrupt it.
func within[T any](ctx context.Context, g *GPUs, limit time.Duration, uuid string, ask func(*session, api.Device) (T, error)) (T, error) {
	var none, answer T // a call that hangs may still write answer when nobody reads it
	if err := ctx.Err(); err != nil {
		return none, err
	}
	err := g.calls.Within(limit, gpu(uuid), func() error {
		s, err := g.acquire()
		if err != nil {
			return err
		}
		defer g.release(s)
		device, ret := s.DeviceGetHandleByUUID(uuid)
		if err = check("nvmlDeviceGetHandleByUUID", ret); err == nil {
			answer, err = ask(s, device)
		}
		return g.named(s, uuid, err)
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

// named makes what went wrong on a GPU an error for others.
func (g *GPUs) named(s *session, uuid string, err error) error {
	var f *failed
	if !errors.As(err, &f) {
		return err
	}
	if gone := g.gone(s, f.ret); gone != nil {
		return gone
	}
	return problem(uuid, f.call, f.ret)
}

// nothing is the answer of a call that is made for its effect.
type nothing struct{}
