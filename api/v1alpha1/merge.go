package v1alpha1

// merge sets each field that over sets. A strategy drops what configures another.
func (s *GPUSettings) merge(over *GPUSettings) {
	set(&s.ComputeMode, over.ComputeMode)
	set(&s.Enforcement, over.Enforcement)
	if over.Sharing == nil {
		return
	}
	merged := Sharing{}
	if s.Sharing != nil {
		merged = *s.Sharing
	}
	merged.merge(over.Sharing)
	s.Sharing = &merged
}

// merge sets each field that over sets: lists are replaced as a whole, and a traffic
// class replaces a DSCP and the other way round.
func (s *NICSettings) merge(over *NICSettings) {
	set(&s.InterfaceName, over.InterfaceName)
	set(&s.MTU, over.MTU)
	if len(over.Addresses) > 0 {
		s.Addresses = over.Addresses
	}
	if len(over.Routes) > 0 {
		s.Routes = over.Routes
	}
	if over.TrafficClass != nil || over.DSCP != nil {
		s.TrafficClass, s.DSCP = over.TrafficClass, over.DSCP
	}
	set(&s.RequireLossless, over.RequireLossless)
	set(&s.KeepHostNetwork, over.KeepHostNetwork)
	set(&s.NCCLTopology, over.NCCLTopology)
}

func (s *Sharing) merge(over *Sharing) {
	if over.MPS != nil {
		merged := MPSSharing{}
		if s.MPS != nil {
			merged = *s.MPS
		}
		set(&merged.ActiveThreadPercentage, over.MPS.ActiveThreadPercentage)
		set(&merged.MemoryLimit, over.MPS.MemoryLimit)
		set(&merged.Priority, over.MPS.Priority)
		s.MPS = &merged
	}
	if over.TimeSlicing != nil {
		merged := TimeSlicing{}
		if s.TimeSlicing != nil {
			merged = *s.TimeSlicing
		}
		set(&merged.Interval, over.TimeSlicing.Interval)
		s.TimeSlicing = &merged
	}
	if over.Strategy == nil {
		return
	}
	s.Strategy = over.Strategy
	if *s.Strategy != SharingMPS {
		s.MPS = nil
	}
	if *s.Strategy != SharingTimeSlicing {
		s.TimeSlicing = nil
	}
}

func set[T any](to **T, over *T) {
	if over != nil {
		*to = over
	}
}
