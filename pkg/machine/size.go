package machine

import (
	"fmt"
	"regexp"
)

// Sharing is what an administrator says of shares.
type Sharing struct {
	// WithoutMPS says that nobody looks after MPS control daemons: no such shares are
	// offered.
	WithoutMPS bool `json:"withoutMPS,omitempty"`
	// TimeSliceClients is how many claims at most have a time slice of one GPU.
	// Default: DefaultTimeSliceClients.
	TimeSliceClients int    `json:"timeSliceClients,omitempty"`
	Sizes            []Size `json:"sizes,omitempty"`
	// Kept names devices of sizes that are there although their size does not fit the
	// GPU, or nobody knows it: each is the least that there can be. Claims of before have
	// them.
	Kept []string `json:"-"`
}

// DefaultTimeSliceClients is how many claims have a time slice of one GPU where
// nobody says otherwise.
const DefaultTimeSliceClients = 16

// Size is a size of share that an administrator offers under a name of its own: a
// device of which every share is of that size.
type Size struct {
	// Name ends device names: a DNS label of at most MaxSizeName characters that
	// begins with a letter, as no PCI function does.
	Name string `json:"name"`
	// Kind is KindMPS or KindTimeSlice.
	Kind Kind `json:"kind"`
	// Memory of one share, in bytes. 0, where Clients is set: an equal part for each.
	Memory uint64 `json:"memory"`
	// Clients is how many claims at most have such a share of one GPU; 0: as of all
	// shares of the kind. KindTimeSlice alone has it.
	Clients int `json:"clients,omitempty"`
	// Compute is the percentage of the GPU's multiprocessors that one share
	// reserves, and is held to; 0 reserves nothing. KindMPS alone has it.
	Compute int `json:"compute,omitempty"`
}

// MaxSizeName is how long the name of a size can be, in characters. With the longest
// kind, and an address with PCI domain and function, it fills a DNS label.
const MaxSizeName = 40

// MinShare is the least memory that a share has, in bytes.
const MinShare = 1 << 20

var sizeName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Validate says what is wrong with the first size that is wrong: its name, the
// field, the value, and what would be right.
func (s *Sharing) Validate() error {
	if s.TimeSliceClients < 0 {
		return fmt.Errorf("time slices: %d clients: want 1 at least", s.TimeSliceClients)
	}
	names := map[string]bool{}
	for _, size := range s.Sizes {
		if err := size.validate(); err != nil {
			return fmt.Errorf("size %q: %w", size.Name, err)
		}
		if names[size.Name] {
			return fmt.Errorf("size %q: the name is there twice: give each size its own, whatever its kind", size.Name)
		}
		names[size.Name] = true
	}
	return nil
}

// Each is the memory of one share of a GPU that has so much for workloads, in bytes,
// and whether there is room for one.
func (s *Size) Each(usable uint64) (uint64, bool) {
	each := s.Memory
	if each == 0 && s.Clients > 0 {
		each = usable / uint64(s.Clients) &^ (MinShare - 1)
	}
	return each, each >= MinShare && each <= usable
}

func (s *Size) validate() error {
	switch {
	case !sizeName.MatchString(s.Name) || len(s.Name) > MaxSizeName:
		return fmt.Errorf("name: want a letter, then letters, digits and dashes, no dash last, all lower-case, %d at most", MaxSizeName)
	case !s.Kind.SharesGPU():
		return fmt.Errorf("kind: %q is not known: want %s or %s", s.Kind, KindMPS, KindTimeSlice)
	case s.Clients < 0:
		return fmt.Errorf("clients: %d: want 1 at least, or 0 for as many as there can be", s.Clients)
	case s.Kind != KindTimeSlice && s.Clients != 0:
		return fmt.Errorf("clients: %d, but how many there can be is MPS's to say: leave it out", s.Clients)
	case s.Memory < MinShare && (s.Memory != 0 || s.Clients == 0):
		return fmt.Errorf("memory: %d bytes are too few: want 1Mi at least", s.Memory)
	case s.Kind != KindMPS && s.Compute != 0:
		return fmt.Errorf("compute: %d, but shares of kind %s run in turn, each with the whole GPU: leave it out", s.Compute, s.Kind)
	case s.Compute < 0 || s.Compute > 100:
		return fmt.Errorf("compute: %d is no percentage: want 0 (reserves nothing) to 100", s.Compute)
	}
	return nil
}
