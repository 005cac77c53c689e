package claim

import (
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Prepared is what claims have of the machine.
type Prepared struct {
	// Names of devices, also of those that are being prepared or released, and of those of
	// an earlier boot: their claims are allocated all the same.
	Names map[string]bool
	// Held are the devices that nobody else can have: those of this boot.
	Held []machine.Held
	// All is false where a record is lost or cannot be read, so that there may be more.
	All bool
}

// Prepared reads the journal.
func (m *Manager) Prepared() (Prepared, error) {
	lost, err := m.Journal.Lost()
	if err != nil {
		return Prepared{}, err
	}
	records, err := m.Journal.List()
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Names: map[string]bool{}, All: !lost}
	for _, r := range records {
		entry := r.Entry
		if entry == nil {
			if entry, _ = m.copyOf(r.UID); entry == nil {
				p.All = false
				continue
			}
		}
		// Partitions are held, and shares joined, by the names of their devices, in
		// records of every version; names of other things do no harm.
		for _, name := range entry.Holds {
			p.Names[name] = true
		}
		for _, device := range entry.Joins {
			p.Names[device] = true
		}
		if entry.BootID == m.BootID {
			is := m.decoded.entry(entry)
			p.Held, p.All = append(p.Held, is.held...), p.All && is.errOfHeld == nil
		}
	}
	return p, nil
}
