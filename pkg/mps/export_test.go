package mps

import "time"

// Sweep is what a set does to its pipe directory.
var Sweep = sweep

// LookNow looks for faults without waiting for the time to do so.
func (m *Manager) LookNow() {
	for _, s := range m.all() {
		s.lock <- struct{}{}
		m.lookAt(m.ctx, s)
		<-s.lock
	}
}

// AgeTimeSlice makes what is known of a GPU's time slice too old to be trusted.
func (m *Manager) AgeTimeSlice(gpu string) {
	m.slices.mutex.Lock()
	defer m.slices.mutex.Unlock()
	m.slices.gpus[gpu].read = time.Time{}
}

// Leave has commands for the control daemons launched, as where their roots cannot be
// opened.
func (m *Manager) Leave() {
	for _, s := range m.all() {
		s.lock <- struct{}{}
		s.leave()
		<-s.lock
	}
}
