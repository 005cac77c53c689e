package partitionclass

import "sync"

// forgotten are the classes, by name, whose extended resource the scheduler may have
// forgotten: a DeviceClass that served it, too, has gone or given it up, and may have come
// only a moment before, so that no class has reported it. The zero value has none.
type forgotten struct {
	mu      sync.Mutex
	classes map[string]bool
}

func (f *forgotten) add(class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.classes == nil {
		f.classes = map[string]bool{}
	}
	f.classes[class] = true
}

// take removes a class, and returns whether it was there.
func (f *forgotten) take(class string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.classes[class]
	delete(f.classes, class)
	return was
}
