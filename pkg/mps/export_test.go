package mps

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
