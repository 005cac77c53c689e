package machine

import (
	"cmp"
	"fmt"
	"strings"
)

// Address is a PCI function's address.
type Address struct {
	Domain   uint32
	Bus      uint8
	Device   uint8
	Function uint8
}

// ParseAddress reads "0000:1b:00.0" in either case, also with NVML's domain of
// eight digits.
func ParseAddress(s string) (Address, error) {
	var a Address
	lower := strings.ToLower(s)
	_, err := fmt.Sscanf(lower, "%x:%x:%x.%x", &a.Domain, &a.Bus, &a.Device, &a.Function)
	if err != nil || a.Device > 31 || a.Function > 7 || lower != a.String() && lower != a.long() {
		return Address{}, fmt.Errorf("PCI address %q is not of the form 0000:1b:00.0", s)
	}
	return a, nil
}

// String is the form that sysfs has: "0000:1b:00.0".
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function)
}

// Label is the address as it stands in device names: "1b-00", or
// "0008-01-00-1" where domain or function are not 0.
func (a Address) Label() string {
	label := fmt.Sprintf("%02x-%02x", a.Bus, a.Device)
	if a.Domain != 0 {
		label = fmt.Sprintf("%04x-%s", a.Domain, label)
	}
	if a.Function != 0 {
		label = fmt.Sprintf("%s-%x", label, a.Function)
	}
	return label
}

// Compare orders addresses as sysfs lists them.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Bus, b.Bus),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Function, b.Function))
}

// long is the form that NVML has, with a domain of eight digits.
func (a Address) long() string {
	return fmt.Sprintf("%08x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function)
}

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}
