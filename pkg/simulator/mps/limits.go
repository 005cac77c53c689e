package mps

import "fmt"

// change changes limits of a namespace, or of protocol 2's clients, if all of it can be.
func (s *serverProcess) change(namespace string, do func(*limits) error) error {
	l := s.limits[namespace]
	if err := do(&l); err != nil {
		return err
	}
	if err := s.limit(namespace, l); err != nil {
		return err
	}
	s.limits[namespace] = l
	return nil
}

// percentage is as protocol 2 prints it.
func (d *Daemon) percentage(l limits) string {
	if l.Percentage == 0 {
		return "100.0\n"
	}
	return fmt.Sprintf("%.1f\n", l.Percentage)
}

func (l *limits) setPercentage(text string) error {
	p, err := parsePercentage(text)
	if err != nil {
		return err
	}
	l.Percentage = p
	return nil
}

// memory is a device's limit as it was set under that name: index and UUID are not
// translated.
func (l limits) memory(device string) string {
	limit := ""
	for _, m := range l.Memory {
		if m.Device == device {
			limit = formatSize(m.Bytes)
		}
	}
	if limit == "" {
		return "No limit\n" // assumed
	}
	return limit + "\n"
}

// setMemory does not look whether there is such a device.
func (l *limits) setMemory(device, size string) error {
	bytes, err := ParseSize(size)
	if err != nil {
		return err
	}
	l.Memory = append(l.Memory[:len(l.Memory):len(l.Memory)], memoryLimit{Device: device, Bytes: bytes})
	return nil
}
