package machine

// Whole is what a driver may say otherwise of a GPU while that is in MIG mode.
type Whole struct {
	Memory          Memory `json:"memory"`
	Multiprocessors int    `json:"multiprocessors"`
	NVLinkDomain    string `json:"nvlinkDomain,omitempty"`
	LimitsCgroups   bool   `json:"limitsCgroups,omitempty"`
}

// Whole returns it as the GPU has it.
func (g *GPU) Whole() Whole {
	return Whole{Memory: g.Memory, Multiprocessors: g.Multiprocessors, NVLinkDomain: g.NVLinkDomain, LimitsCgroups: g.LimitsCgroups}
}

// SetWhole gives the GPU what it was.
func (g *GPU) SetWhole(w Whole) {
	g.Memory, g.Multiprocessors, g.NVLinkDomain, g.LimitsCgroups = w.Memory, w.Multiprocessors, w.NVLinkDomain, w.LimitsCgroups
}
