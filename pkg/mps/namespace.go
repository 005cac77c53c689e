package mps

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// socketPath is how long a socket's path can be, in bytes (unix(7)).
const socketPath = 107

// MakeNamespace implements hardware.Sharing. What is so already costs no program.
func (m *Manager) MakeNamespace(ctx context.Context, devices []string, name string, limits hardware.MPSLimits) (string, error) {
	s, unlock, err := m.running(ctx, devices)
	if err != nil {
		return "", fmt.Errorf("namespace %q: %w", name, err)
	}
	if s.record.Protocol < 3 {
		unlock()
		return "", failure.New(failure.Unsupported, "namespace %q: the MPS of this driver has none: they came with branch 615", name)
	}
	return detached(ctx, unlock, func(ctx context.Context) (string, error) {
		pipe := filepath.Join(s.pipe(), serverName, inMPS(name))
		if err := checkNamespace(devices, name, pipe, limits); err != nil {
			return "", err
		}
		before, there := s.record.Namespaces[name]
		if there && before.ThreadPercentage == limits.ThreadPercentage && maps.Equal(before.Memory, limits.Memory) {
			return pipe, nil
		}
		if there {
			err = m.limit(ctx, s, name, before, limits)
		} else {
			err = m.makeNamespace(ctx, s, name, before, limits)
		}
		if err != nil {
			return "", err
		}
		if s.record.Namespaces == nil {
			s.record.Namespaces = map[string]hardware.MPSLimits{}
		}
		s.record.Namespaces[name] = limits
		return pipe, s.record.write(s.dir)
	})
}

// RemoveNamespace implements hardware.Sharing. What the server does not have is removed.
func (m *Manager) RemoveNamespace(ctx context.Context, devices []string, name string) error {
	s := m.find(devices)
	if s == nil {
		return nil
	}
	unlock, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	_, err = detached(ctx, unlock, func(ctx context.Context) (struct{}, error) {
		if _, there := s.record.Namespaces[name]; !there || s.gone {
			return struct{}{}, nil
		}
		if s.answer.Load() != nil {
			if err := m.deleteNamespace(ctx, s, name); err != nil && !m.lacks(ctx, s, name) {
				return struct{}{}, err
			}
		}
		delete(s.record.Namespaces, name) // a daemon that is not there now does not get it again
		return struct{}{}, s.record.write(s.dir)
	})
	return err
}

// running is the set of just these devices, locked, if its daemon runs.
func (m *Manager) running(ctx context.Context, devices []string) (*set, func(), error) {
	if s := m.find(devices); s != nil {
		unlock, err := s.acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		if s.answer.Load() != nil {
			return s, unlock, nil
		}
		unlock()
	}
	return nil, nil, failure.New(failure.Absent, "no MPS control daemon serves %q: start it first", devices)
}

// checkNamespace looks at what MPS would take in silence: a limit for a device that it
// does not know is none.
func checkNamespace(devices []string, name, pipe string, limits hardware.MPSLimits) error {
	invalid := func(format string, args ...any) error {
		return failure.New(failure.Invalid, "namespace %q: %s", name, fmt.Sprintf(format, args...))
	}
	switch {
	case name == "" || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name[0] == '-' || name[len(name)-1] == '-':
		return invalid("it is no DNS label: use up to 63 small letters, digits and hyphens between them")
	case name == "default":
		return invalid("MPS has it for itself: use another name")
	case len(pipe)+len("/control") > socketPath:
		return invalid("its socket's path would be too long: use a name that is shorter by %d bytes", len(pipe)+len("/control")-socketPath)
	case limits.ThreadPercentage < 0 || limits.ThreadPercentage > 100:
		return invalid("thread percentage %d: give 1 to 100, or 0 for no limit", limits.ThreadPercentage)
	}
	for _, device := range slices.Sorted(maps.Keys(limits.Memory)) {
		if bytes := limits.Memory[device]; !slices.Contains(devices, device) || bytes < 1<<20 {
			return invalid("%d bytes of device %s: give at least %d (1Mi), of one of %q", bytes, device, 1<<20, devices)
		}
	}
	return nil
}

// inMPS is a name as MPS takes it: small letters, digits and underscores, of which DNS
// labels have none.
func inMPS(name string) string { return strings.ReplaceAll(name, "-", "_") }

// makeNamespace makes a namespace with its limits, or none.
func (m *Manager) makeNamespace(ctx context.Context, s *set, name string, before, limits hardware.MPSLimits) error {
	if _, err := m.ask(ctx, s, "namespace", "create", inMPS(name), "--server="+serverName); err != nil {
		return err
	}
	err := m.limit(ctx, s, name, before, limits)
	if err != nil {
		_ = m.deleteNamespace(ctx, s, name) // or it would have no limits
	}
	return err
}

func (m *Manager) deleteNamespace(ctx context.Context, s *set, name string) error {
	_, err := m.ask(ctx, s, "namespace", "delete", inMPS(name), "--server="+serverName, "--force")
	return err
}

// limit changes a namespace's limits, and looks whether MPS has taken them.
func (m *Manager) limit(ctx context.Context, s *set, name string, before, limits hardware.MPSLimits) error {
	memory := memoryLimit(s.devices, limits.Memory)
	if limits.ThreadPercentage == 0 && before.ThreadPercentage != 0 || len(limits.Memory) < len(before.Memory) {
		return failure.New(failure.Conflict, "namespace %q: MPS takes no limit away from a namespace that is there: remove it first", name)
	}
	words := []string{"namespace", "set", inMPS(name), "--server=" + serverName}
	if limits.ThreadPercentage != 0 {
		words = append(words, "--active-thread-percentage="+strconv.Itoa(limits.ThreadPercentage))
	}
	if memory != "" {
		words = append(words, "--pinned-memory-limit="+memory)
	}
	if len(words) == 4 {
		return nil // the command wants one option at least
	}
	if _, err := m.ask(ctx, s, words...); err != nil || memory == "" {
		return err
	}
	set, err := m.ask(ctx, s, "namespace", "get", inMPS(name), serverName, "pinned-memory-limit")
	if err == nil && !strings.ContainsAny(set, "123456789") {
		err = fmt.Errorf("namespace %q: MPS has not taken the memory limit %s, but says %q", name, memory, strings.TrimSpace(set))
	}
	return err
}

// memoryLimit is the limits as MPS takes them, rounded down to MiB: one size where it
// is every device's, since that cannot miss a device; else each device's, in the
// devices' order.
func memoryLimit(devices []string, memory map[string]uint64) string {
	var each []string
	sizes := map[string]bool{}
	for _, d := range devices {
		if bytes, ok := memory[d]; ok {
			size := strconv.FormatUint(bytes>>20, 10) + "M"
			sizes[size] = true
			each = append(each, d+"="+size)
		}
	}
	if len(each) == len(devices) && len(sizes) == 1 {
		return strings.TrimPrefix(each[0], devices[0]+"=")
	}
	return strings.Join(each, ",")
}

// namespaces lists the server's, as MPS names them.
func (m *Manager) namespaces(ctx context.Context, s *set) (names []string, err error) {
	output, err := m.ask(ctx, s, "namespace", "list", "--server="+serverName, "--format=csv,noheader")
	for line := range strings.Lines(output) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ",")
		names = append(names, name)
	}
	return names, err
}

// lacks says that the daemon answers and does not have a namespace, or not even its
// server.
func (m *Manager) lacks(ctx context.Context, s *set, name string) bool {
	servers, err := m.servers(ctx, s)
	if err != nil || indexServer(servers) < 0 {
		return err == nil
	}
	names, err := m.namespaces(ctx, s)
	return err == nil && !slices.Contains(names, inMPS(name))
}

// mendNamespaces makes a daemon's namespaces those of the record: whoever was to do
// both may have ended between.
func (m *Manager) mendNamespaces(s *set) {
	unlock, err := s.acquire(m.ctx)
	if err != nil {
		return
	}
	defer unlock()
	if s.answer.Load() == nil {
		return
	}
	names, err := m.namespaces(m.ctx, s)
	there := map[string]bool{"default": true}
	for _, name := range names {
		name = strings.ReplaceAll(name, "_", "-")
		if _, wanted := s.record.Namespaces[name]; !wanted && name != "default" && err == nil {
			err = m.deleteNamespace(m.ctx, s, name)
		}
		there[name] = true
	}
	for name, limits := range s.record.Namespaces {
		if !there[name] && err == nil {
			err = m.makeNamespace(m.ctx, s, name, hardware.MPSLimits{}, limits)
		}
	}
	if err != nil {
		m.options.Log.Error("Cannot compare an MPS control daemon's namespaces with what they were", "devices", s.devices, "err", err)
	}
}
