package claim

// Prepared names the devices that claims have, also those that are being prepared or
// released, and those of an earlier boot: their claims are allocated all the same. all
// is false where a record is lost or cannot be read, so that there may be more.
func (m *Manager) Prepared() (names map[string]bool, all bool, err error) {
	lost, err := m.Journal.Lost()
	if err != nil {
		return nil, false, err
	}
	records, err := m.Journal.List()
	if err != nil {
		return nil, false, err
	}
	names, all = map[string]bool{}, !lost
	for _, r := range records {
		entry := r.Entry
		if entry == nil {
			if entry, _ = m.copyOf(r.UID); entry == nil {
				all = false
				continue
			}
		}
		// Partitions are held, and shares joined, by the names of their devices, in
		// records of every version; names of other things do no harm.
		for _, name := range entry.Holds {
			names[name] = true
		}
		for _, device := range entry.Joins {
			names[device] = true
		}
	}
	return names, all, nil
}
