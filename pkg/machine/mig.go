package machine

// MIGTotals is what a GPU has in all to make partitions from.
type MIGTotals struct {
	ComputeSlices int
	MemoryUnits   int
	Engines       Engines
	// Media says whether the GPU has profiles with media extensions.
	Media bool
}

// Totals is the most that any profile takes of each thing: the largest profile
// is the whole GPU, but a smaller one can have an engine that it lacks.
func (m MIG) Totals() MIGTotals {
	var t MIGTotals
	for _, p := range m.Profiles {
		t.ComputeSlices = max(t.ComputeSlices, p.ComputeSlices)
		t.Media = t.Media || p.Media
		t.Engines = Engines{
			Copy:     max(t.Engines.Copy, p.Engines.Copy),
			Decoders: max(t.Engines.Decoders, p.Engines.Decoders),
			Encoders: max(t.Engines.Encoders, p.Engines.Encoders),
			JPEG:     max(t.Engines.JPEG, p.Engines.JPEG),
			OFA:      max(t.Engines.OFA, p.Engines.OFA),
		}
		for _, placement := range p.Placements {
			t.MemoryUnits = max(t.MemoryUnits, placement.Start+placement.Size)
		}
	}
	return t
}
