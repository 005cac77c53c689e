package simulator

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// NoLimit is the hard limit that limits nothing (NVML_DEVICE_MEMORY_LIMIT_MAX).
const NoLimit = ^uint64(0)

// MemoryLimits are what a cgroup's processes may have of a GPU's memory, in bytes
// (nvmlDeviceSetMemoryLimits_v1). None is {0, NoLimit}.
type MemoryLimits struct {
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// CgroupLimits are those of one cgroup. A later one of the same path has another inode,
// and none of its limits.
type CgroupLimits struct {
	MemoryLimits
	Inode uint64 `json:"inode"`
}

// SetMemoryLimits limits the processes of a cgroup, by its path below sysfs, and of
// those below it. A cgroup's limits end with it. ErrNoCgroup where it is not
// there, failure.Unsupported where the GPU has no such limits.
func (m *Machine) SetMemoryLimits(gpu, cgroup string, to MemoryLimits) error {
	return m.call(gpu, "nvmlDeviceSetMemoryLimits", func(s *State, g GPU) error {
		inode, err := g.canLimit(cgroup)
		if err != nil {
			return err
		}
		total := g.Model.Memory.Total
		if to.Soft > to.Hard || to.Soft > total || to.Hard > total && to.Hard != NoLimit {
			return failure.New(failure.Invalid, "GPU %s: limits %+v: give a soft limit that is not above the hard one, and none above %d bytes", gpu, to, total)
		}
		if g.MemoryLimits == nil {
			g.MemoryLimits = map[string]CgroupLimits{}
		}
		g.MemoryLimits[cgroup] = CgroupLimits{to, inode}
		if to == (MemoryLimits{Hard: NoLimit}) {
			delete(g.MemoryLimits, cgroup)
		}
		g.dropLimits()
		return nil
	})
}

// ReadMemoryLimits reads a cgroup's limits, and what its processes have of the GPU.
// ErrNoLimits where there are none, ErrNoCgroup as above.
func (m *Machine) ReadMemoryLimits(gpu, cgroup string) (limits MemoryLimits, used uint64, err error) {
	state, err := m.State()
	if err == nil {
		_, err = state.limits(gpu, cgroup)
	}
	if err != nil { // without a lock: who only asks whether the GPU can may not write
		return MemoryLimits{}, 0, err
	}
	err = m.Frozen(func(s *State) error {
		now, err := s.limits(gpu, cgroup)
		if err != nil {
			return err
		}
		limits = now.MemoryLimits
		g, err := s.usable(gpu)
		if err != nil {
			return err
		}
		all, err := m.allocations(s)
		used = g.usedBelow(all, cgroup, now.Inode)
		return err
	})
	return limits, used, err
}

// limits are a cgroup's.
func (s *State) limits(gpu, cgroup string) (CgroupLimits, error) {
	g, err := s.usable(gpu)
	if err != nil {
		return CgroupLimits{}, err
	}
	inode, err := g.canLimit(cgroup)
	if err != nil {
		return CgroupLimits{}, err
	}
	now, ok := g.MemoryLimits[cgroup]
	if !ok || now.Inode != inode {
		return CgroupLimits{}, ErrNoLimits
	}
	return now, nil
}

// What is wrong with a cgroup.
var (
	ErrNoCgroup = errors.New("the cgroup cannot be opened")
	ErrNoLimits = errors.New("the cgroup has no limits")
)

// LimitsCgroups says whether cgroups can have memory limits of the GPU as it is now.
func (g GPU) LimitsCgroups() bool {
	return g.DriverLimits && !g.Has(FaultNoMemoryLimits) && !g.MIGEnabled
}

// saysLimits is what a description has of that: a GPU in MIG mode is not asked.
func (g GPU) saysLimits() bool {
	return g.DriverLimits && (g.MIGEnabled || g.LimitsCgroups() && !g.forbids(getMemoryLimits))
}

// canLimit returns the inode of a cgroup that can have limits.
func (g GPU) canLimit(cgroup string) (inode uint64, err error) {
	if !g.LimitsCgroups() {
		return 0, failure.New(failure.Unsupported, "GPU %s has no memory limits of cgroups: they are for whole GPUs, of drivers of branch 615 and later, and not of GPUs with the fault %s", g.Spec.UUID, FaultNoMemoryLimits)
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(cgroup, &stat); err != nil || !filepath.IsAbs(cgroup) {
		return 0, ErrNoCgroup
	}
	return stat.Ino, nil
}

// dropLimits forgets the limits of cgroups that are gone.
func (g GPU) dropLimits() {
	for cgroup, limits := range g.MemoryLimits {
		var stat syscall.Stat_t
		if errors.Is(syscall.Stat(cgroup, &stat), fs.ErrNotExist) || limits.ofAnother(cgroup) {
			delete(g.MemoryLimits, cgroup)
		}
	}
}

// ofAnother says whether another cgroup is now where theirs was. A container may not see
// either.
func (l CgroupLimits) ofAnother(cgroup string) bool {
	var stat syscall.Stat_t
	return syscall.Stat(cgroup, &stat) == nil && stat.Ino != l.Inode
}

// withinLimits is an error where a process in that cgroup may not have so many bytes more.
func (g GPU) withinLimits(all []Allocation, cgroup string, bytes uint64) error {
	for limited, limits := range g.MemoryLimits {
		if limits.Hard == NoLimit || !below(cgroup, limited, limits.Inode) || limits.ofAnother(limited) {
			continue
		}
		if used := g.usedBelow(all, limited, limits.Inode); bytes > limits.Hard-min(used, limits.Hard) {
			return failure.New(failure.Conflict, "GPU %s: cgroup %s has %d bytes of its limit of %d left, %d are wanted",
				g.Spec.UUID, limited, limits.Hard-min(used, limits.Hard), limits.Hard, bytes)
		}
	}
	return nil
}

func (g GPU) usedBelow(all []Allocation, limited string, inode uint64) (used uint64) {
	for _, a := range all {
		if a.Place == g.Spec.UUID && below(a.Cgroup, limited, inode) {
			used += a.Bytes
		}
	}
	return used
}

// below says whether a process's cgroup ("/kubepods/a/b") is the one at that path
// ("/sys/fs/cgroup/kubepods/a"), or below it.
func below(cgroup, path string, inode uint64) bool {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "/sys/fs/cgroup"), "/unified")
	return cgroup == path || strings.HasPrefix(cgroup, path+"/") || cgroup == NamespaceCgroup(inode)
}

// NamespaceCgroup is how a process names its cgroup in a cgroup namespace of its own, which
// has that cgroup as its root: of cgroups the process sees no other, and no path.
func NamespaceCgroup(inode uint64) string { return "#" + strconv.FormatUint(inode, 10) }
