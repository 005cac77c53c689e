package model

import "github.com/dovetail-dra/dovetail/pkg/machine"

// sevenSliceSizes is what differs between the models of seven slices, in the
// order 1g, 1g with double memory, 2g, 3g, 4g, 7g. Memory is usable MiB.
type sevenSliceSizes struct {
	names   [6]string
	memory  [6]uint64
	sms     [6]int
	engines [7]machine.Engines
}

// Engines in the order 1g, 1g+me, 1g with double memory, 2g, 3g, 4g, 7g.
var (
	ampereEngines = [7]machine.Engines{
		{Copy: 1},
		{Copy: 1, Decoders: 1, JPEG: 1, OFA: 1},
		{Copy: 1, Decoders: 1},
		{Copy: 2, Decoders: 1},
		{Copy: 3, Decoders: 2},
		{Copy: 4, Decoders: 2},
		{Copy: 7, Decoders: 5, JPEG: 1, OFA: 1},
	}
	hopperEngines = [7]machine.Engines{
		{Copy: 1, Decoders: 1, JPEG: 1},
		{Copy: 1, Decoders: 1, JPEG: 1, OFA: 1},
		{Copy: 1, Decoders: 1, JPEG: 1},
		{Copy: 2, Decoders: 2, JPEG: 2},
		{Copy: 3, Decoders: 3, JPEG: 3},
		{Copy: 4, Decoders: 4, JPEG: 4},
		{Copy: 8, Decoders: 7, JPEG: 7, OFA: 1},
	}
	// A B200's: for a GB200, which no source lists, they are an estimate.
	blackwellEngines = [7]machine.Engines{
		{Copy: 2, Decoders: 1, JPEG: 1},
		{Copy: 2, Decoders: 1, JPEG: 1, OFA: 1},
		{Copy: 2, Decoders: 1, JPEG: 1},
		{Copy: 3, Decoders: 1, JPEG: 1},
		{Copy: 6, Decoders: 1, JPEG: 1},
		{Copy: 8, Decoders: 1, JPEG: 1},
		{Copy: 16, Decoders: 1, JPEG: 1, OFA: 1},
	}
)

// Engines of the hardware.
var (
	ampereAll = machine.Engines{Copy: 7, Decoders: 5, JPEG: 1, OFA: 1}
	hopperAll = machine.Engines{Copy: 8, Decoders: 7, JPEG: 7, OFA: 1}
	// Decoders and JPEG engines as seven 1g need them: the true counts may be higher.
	blackwellAll = machine.Engines{Copy: 16, Decoders: 7, JPEG: 7, OFA: 1}
	a30All       = machine.Engines{Copy: 4, Decoders: 4, JPEG: 1, OFA: 1}
	proAll       = machine.Engines{Copy: 4, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}
)

// sevenSlices lists the profiles of a GPU with 7 slices and 8 memory units.
func sevenSlices(s sevenSliceSizes) []Profile {
	oneOf8 := places(1, 0, 1, 2, 3, 4, 5, 6)
	profile := func(number, id, slices, column, engines, most int, where []machine.Placement) Profile {
		return Profile{Number: number, MIGProfile: machine.MIGProfile{
			ID: id, Name: s.names[column], ComputeSlices: slices,
			Memory: s.memory[column] * mib, Multiprocessors: s.sms[column], Engines: s.engines[engines],
			MaxInstances: most, Placements: where,
		}}
	}
	media := profile(7, 20, 1, 0, 1, 1, oneOf8)
	media.Name += "+me"
	media.Media = true
	return []Profile{
		profile(0, 19, 1, 0, 0, 7, oneOf8),
		profile(1, 14, 2, 2, 3, 3, places(2, 0, 2, 4)),
		profile(2, 9, 3, 3, 4, 2, places(4, 0, 4)),
		profile(3, 5, 4, 4, 5, 1, places(4, 0)),
		profile(4, 0, 7, 5, 6, 1, places(8, 0)),
		media,
		profile(9, 15, 1, 1, 2, 4, places(2, 0, 2, 4, 6)),
	}
}

// places lists placements of one size, in memory units.
func places(size int, starts ...int) []machine.Placement {
	placements := make([]machine.Placement, len(starts))
	for i, start := range starts {
		placements[i] = machine.Placement{Start: start, Size: size}
	}
	return placements
}

// A 1g has a decoder by nvidia-smi, and none by the MIG user guide.
var a30Profiles = []Profile{
	shape(0, 14, 1, "1g.6gb", 5952, 14, machine.Engines{Copy: 1, Decoders: 1}, 4, places(1, 0, 1, 2, 3)),
	shape(1, 5, 2, "2g.12gb", 11968, 28, machine.Engines{Copy: 2, Decoders: 2}, 2, places(2, 0, 2)),
	shape(3, 0, 4, "4g.24gb", 24000, 56,
		machine.Engines{Copy: 4, Decoders: 4, JPEG: 1, OFA: 1}, 1, places(4, 0)),
	withMedia(shape(7, 21, 1, "1g.6gb+me", 5952, 14,
		machine.Engines{Copy: 1, Decoders: 1, JPEG: 1, OFA: 1}, 1, places(1, 0, 1, 2, 3))),
	withMedia(shape(8, 6, 2, "2g.12gb+me", 11968, 28,
		machine.Engines{Copy: 2, Decoders: 2, JPEG: 1, OFA: 1}, 1, places(2, 0, 2))),
}

var (
	proOne   = machine.Engines{Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1}
	proTwo   = machine.Engines{Copy: 2, Decoders: 2, Encoders: 2, JPEG: 2}
	proFour  = machine.Engines{Copy: 4, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}
	proMedia = machine.Engines{Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1, OFA: 1}
	quarters = places(3, 0, 3, 6, 9)
	halves   = places(6, 0, 6)
	whole    = places(12, 0)

	rtxPro6000Profiles = []Profile{
		shape(0x0, 14, 1, "1g.24gb", 24192, 46, proOne, 4, quarters),
		shape(0x1, 5, 2, "2g.48gb", 48512, 94, proTwo, 2, halves),
		shape(0x3, 0, 4, "4g.96gb", 97280, 188, proFour, 1, whole),
		withMedia(shape(0x7, 21, 1, "1g.24gb+me", 24192, 46, proMedia, 1, quarters)),
		shape(0xa, 47, 1, "1g.24gb+gfx", 24192, 46, proOne, 4, quarters),
		shape(0xb, 35, 2, "2g.48gb+gfx", 48512, 94, proTwo, 2, halves),
		shape(0xc, 32, 4, "4g.96gb+gfx", 97280, 188, proFour, 1, whole),
		shape(0xd, 67, 1, "1g.24gb-me", 24192, 46, machine.Engines{Copy: 1}, 4, quarters),
		shape(0xe, 66, 2, "2g.48gb-me", 48512, 94, machine.Engines{Copy: 2}, 2, halves),
		withMedia(shape(0xf, 65, 1, "1g.24gb+me.all", 24192, 46,
			machine.Engines{Copy: 1, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}, 1, quarters)),
		withMedia(shape(0x10, 64, 2, "2g.48gb+me.all", 48512, 94,
			machine.Engines{Copy: 2, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}, 1, halves)),
	}
)

func shape(number, id, slices int, name string, memory uint64, sms int,
	engines machine.Engines, most int, where []machine.Placement) Profile {
	return Profile{Number: number, MIGProfile: machine.MIGProfile{
		ID: id, Name: name, ComputeSlices: slices,
		Memory: memory * mib, Multiprocessors: sms, Engines: engines,
		MaxInstances: most, Placements: where,
	}}
}

func withMedia(p Profile) Profile {
	p.Media = true
	return p
}
