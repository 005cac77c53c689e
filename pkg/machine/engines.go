package machine

// Engines counts a GPU's, or a partition's, fixed-function units.
type Engines struct {
	Copy     int `json:"copy"`
	Decoders int `json:"decoders"`
	Encoders int `json:"encoders"`
	JPEG     int `json:"jpeg"`
	OFA      int `json:"ofa"`
}

// Plus is both together.
func (e Engines) Plus(other Engines) Engines {
	return e.each(other, func(a, b int) int { return a + b })
}

// Minus is what is left when some are taken: none of a kind where more are taken.
func (e Engines) Minus(taken Engines) Engines {
	return e.each(taken, func(a, b int) int { return max(0, a-b) })
}

// Times is what that many partitions have together.
func (e Engines) Times(n int) Engines {
	return e.each(e, func(a, _ int) int { return n * a })
}

// Within says whether there are no more of any kind than that.
func (e Engines) Within(most Engines) bool { return e.Minus(most) == Engines{} }

// orMore is the larger count of each kind.
func (e Engines) orMore(other Engines) Engines {
	return e.each(other, func(a, b int) int { return max(a, b) })
}

func (e Engines) sum() int { return e.Copy + e.Decoders + e.Encoders + e.JPEG + e.OFA }

func (e Engines) each(other Engines, of func(a, b int) int) Engines {
	return Engines{
		Copy:     of(e.Copy, other.Copy),
		Decoders: of(e.Decoders, other.Decoders),
		Encoders: of(e.Encoders, other.Encoders),
		JPEG:     of(e.JPEG, other.JPEG),
		OFA:      of(e.OFA, other.OFA),
	}
}
