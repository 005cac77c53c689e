package kernel

// SysctlNames are those that Sysctls tells.
func SysctlNames() []string {
	var names []string
	for _, f := range families {
		for name := range f.places {
			names = append(names, f.folder+"/"+name)
		}
	}
	return names
}
