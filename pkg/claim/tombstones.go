package claim

import "sync"

// remembered is how many released claims are remembered. A call can be overtaken
// by seconds, not by this many claims.
const remembered = 1024

// tombstones remembers which claims were released lately. The zero value is ready.
type tombstones struct {
	mu    sync.Mutex // guards what follows
	uids  map[string]bool
	order []string
}

func (t *tombstones) add(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uids[uid] {
		return
	}
	if t.uids == nil {
		t.uids = map[string]bool{}
	}
	if len(t.order) == remembered {
		delete(t.uids, t.order[0])
		t.order = t.order[1:]
	}
	t.uids[uid] = true
	t.order = append(t.order, uid)
}

func (t *tombstones) has(uid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uids[uid]
}
