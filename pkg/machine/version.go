package machine

import "fmt"

// Version is a version of two numbers, such as a CUDA compute capability.
type Version struct {
	Major int
	Minor int
}

// String is "9.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Version) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%d.%d", &v.Major, &v.Minor); err != nil || n != 2 {
		return fmt.Errorf("version %q is not of the form 9.0", text)
	}
	return nil
}
