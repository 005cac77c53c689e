package simulator

import "time"

// Trouble is what goes wrong with a GPU or a NIC because somebody asked for it.
type Trouble struct {
	// Delays are how much longer a call takes, by its name (an NVML call's without its
	// version), or AnyCall.
	Delays map[string]time.Duration `json:"delays,omitempty"`
	// Failures are of the next calls, by the call's name.
	Failures map[string]Failure `json:"failures,omitempty"`
}

// AnyCall in Trouble.Delays stands for every call that concerns the device.
const AnyCall = "*"

// Delay is how much longer that call takes on this device.
func (t *Trouble) Delay(call string) time.Duration {
	if len(t.Delays) == 0 {
		return 0
	}
	return t.Delays[AnyCall] + t.Delays[call]
}

// forbids says whether a call is not permitted.
func (t *Trouble) forbids(call string) bool { return t.Failures[call].Error == FailureNoPermission }

func (t *Trouble) slow(call string, by time.Duration) {
	if by == 0 {
		delete(t.Delays, call)
		return
	}
	if t.Delays == nil {
		t.Delays = map[string]time.Duration{}
	}
	t.Delays[call] = by
}

func (t *Trouble) fail(call string, f Failure) {
	if f.Times == 0 {
		delete(t.Failures, call)
		return
	}
	if t.Failures == nil {
		t.Failures = map[string]Failure{}
	}
	t.Failures[call] = f
}

// next takes one failure of a call, if there is one.
func (t *Trouble) next(call string) (Failure, bool) {
	f, ok := t.Failures[call]
	if ok {
		f.Times--
		t.fail(call, f)
	}
	return f, ok
}

// trouble is a GPU's or a NIC's of that name.
func (s *State) trouble(name string) (*Trouble, error) {
	if n, err := s.FindNIC(name); err == nil {
		return &n.Trouble, nil
	}
	g, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	return &g.Trouble, nil
}
