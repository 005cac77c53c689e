package mps

import (
	"fmt"
	"strconv"
	"strings"
)

// memoryLimit is one device's.
type memoryLimit struct {
	Device string `json:"device"`
	Bytes  uint64 `json:"bytes"`
}

// parseLimits reads "0=10G,GPU-…=512M", or with bare a size alone, for each device.
func parseLimits(text string, bare bool) ([]memoryLimit, error) {
	if text == "" {
		return nil, nil
	}
	var all []memoryLimit
	for part := range strings.SplitSeq(text, ",") {
		device, size, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok && bare {
			device, size = "", device
		} else if !ok || device == "" {
			return nil, fmt.Errorf("memory limit %q: give DEVICE=SIZE", part)
		}
		bytes, err := ParseSize(size)
		if err != nil {
			return nil, err
		}
		all = append(all, memoryLimit{Device: device, Bytes: bytes})
	}
	return all, nil
}

// ParseSize reads a size as MPS does: an integer with K, M or G behind it, each a
// power of 1024, and perhaps a B.
func ParseSize(text string) (uint64, error) {
	unit := map[byte]uint64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
	trimmed := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B")
	if trimmed == "" || unit[trimmed[len(trimmed)-1]] == 0 {
		return 0, fmt.Errorf("size %q: give an integer and K, M or G, such as 512M", text)
	}
	n, err := strconv.ParseUint(trimmed[:len(trimmed)-1], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("size %q: give an integer and K, M or G, such as 512M", text)
	}
	return n * unit[trimmed[len(trimmed)-1]], nil
}

// formatSize writes a size with the largest unit that leaves nothing over.
func formatSize(bytes uint64) string {
	for _, u := range []struct {
		bytes uint64
		name  string
	}{{1 << 30, "G"}, {1 << 20, "M"}} {
		if bytes%u.bytes == 0 {
			return strconv.FormatUint(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatUint(bytes>>10, 10) + "K"
}

// limitOf is the last limit of the device at index, 0 where there is none.
func limitOf(all []memoryLimit, index int, uuid string) (bytes uint64) {
	for _, l := range all {
		if l.Device == "" || l.Device == strconv.Itoa(index) || strings.EqualFold(l.Device, uuid) {
			bytes = l.Bytes
		}
	}
	return bytes
}

// lower is the smaller limit, where 0 is none.
func lower(a, b uint64) uint64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// parsePercentage reads one of up to 100; "" is 0, no limit.
func parsePercentage(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || !(p > 0 && p <= 100) {
		return 0, fmt.Errorf("thread percentage %q: give more than 0, and up to 100", text)
	}
	return p, nil
}
