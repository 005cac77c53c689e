// Package nvml reads and sets NVIDIA GPUs through NVML, the driver's library.
// It implements hardware.GPUs and is, beside pkg/cdi, the only importer of
// go-nvml; no code of NVML's leaves it.
//
// NVML's calls cannot be interrupted: a context is looked at before a call, and a
// GPU that hangs is waited for only so long.
package nvml

import (
	"cmp"
	"sync"
	"time"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience"
)

// Options say where NVML is. The zero value leaves it to the loader.
type Options struct {
	// LibraryPath is the path of libnvidia-ml.so.1.
	LibraryPath string
	// DriverRoot is the directory below which the driver is installed, where
	// LibraryPath is not given. It is searched anew until NVML is there.
	DriverRoot string
	// Cgroup is the path of a cgroup of version 2, about which GPUs are asked whether
	// they can limit any. Empty: they are described as if they could not.
	Cgroup string
	// Patience is how long a query waits for a GPU. Default: patience.Default.
	Patience time.Duration
	// OpenPatience is how long the first call waits for the driver. Default: 1 min.
	OpenPatience time.Duration
	// ChangePatience is how long a change of its partitions does. Default: 14 s.
	ChangePatience time.Duration
}

// changePatience is far more than making or destroying an instance takes. The three
// changes of one partition (MIG mode, GPU instance, compute instance) fit into the 45 s
// that the kubelet waits for a call.
const changePatience = 14 * time.Second

// identity is what a GPU is told apart by.
type identity struct {
	uuid    string
	address machine.Address
}

// GPUs is hardware.GPUs over NVML. NVML is opened by the first call that needs
// it, and again by later ones while that failed or after the driver went away.
type GPUs struct {
	options Options
	calls   patience.Calls

	// opening is held while NVML is opened.
	opening sync.Mutex
	// mutex guards all below. None of NVML's calls is made while it is held.
	mutex   sync.Mutex
	path    string // of library
	library api.Interface
	session *session // nil: NVML is not initialized
	// ended is closed when NVML has been left for the last time so far; nil: it never was.
	ended chan struct{}
	// known has who an index was when it was last readable. It and xids hold
	// until the driver is loaded anew.
	known map[int]identity
	// xids has the last critical Xid by UUID, for drivers that do not say
	// whether a GPU is well.
	xids map[string]uint64
}

var _ hardware.GPUs = (*GPUs)(nil)

// New opens nothing yet.
func New(options Options) *GPUs {
	options.Patience = cmp.Or(options.Patience, patience.Default)
	options.OpenPatience = cmp.Or(options.OpenPatience, openPatience)
	options.ChangePatience = cmp.Or(options.ChangePatience, changePatience)
	return &GPUs{options: options, known: map[int]identity{}, xids: map[string]uint64{}, calls: patience.Calls{Limit: options.Patience}}
}

// NVML is the library itself, for those that ask it what hardware.GPUs does
// not. They must call its Init and Shutdown in pairs; NVML counts them, so
// that they do not disturb this package, nor it them.
func (g *GPUs) NVML() api.Interface {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.locate()
}

// Close implements hardware.GPUs.
func (g *GPUs) Close() error {
	g.mutex.Lock()
	if g.session != nil {
		g.dropLocked(g.session)
	}
	ended := g.ended
	g.mutex.Unlock()
	return g.calls.Do(theDriver, func() error { wait(ended); return nil })
}
