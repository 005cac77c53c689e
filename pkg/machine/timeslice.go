package machine

// TimeSlice is how long a GPU works for one process before it turns to the next,
// where several share it (nvidia-smi compute-policy --set-timeslice).
type TimeSlice string

// Time slices, in the order of nvidia-smi's numbers, from 0.
const (
	TimeSliceDefault TimeSlice = "Default"
	TimeSliceShort   TimeSlice = "Short"
	TimeSliceMedium  TimeSlice = "Medium"
	TimeSliceLong    TimeSlice = "Long"
)

// TimeSlices are all of them, in that order.
var TimeSlices = []TimeSlice{TimeSliceDefault, TimeSliceShort, TimeSliceMedium, TimeSliceLong}
