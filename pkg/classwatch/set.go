package classwatch

import (
	"maps"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// set is what a reflector keeps up to date: of each object no more than is needed, so
// that changes of anything else, such as a status, are none.
type set[T any] struct {
	changed func()
	same    func(a, b T) bool
	trim    func(object any) (name string, item T)

	mu    sync.Mutex // guards items
	items map[string]T
}

// get returns the items, and whether they are known.
func (s *set[T]) get() (map[string]T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items), s.items != nil
}

func (s *set[T]) known() bool {
	_, known := s.get()
	return known
}

// change has a copy of the items changed.
func (s *set[T]) change(by func(items map[string]T)) error {
	s.mu.Lock()
	before, items := s.items, map[string]T{}
	maps.Copy(items, before)
	by(items)
	s.items = items
	s.mu.Unlock()
	if before == nil || !maps.EqualFunc(before, items, s.same) {
		s.changed()
	}
	return nil
}

// Add, Update, Delete, Replace and Resync are a cache.ReflectorStore's.
func (s *set[T]) Add(object any) error {
	return s.change(func(items map[string]T) {
		name, item := s.trim(object)
		items[name] = item
	})
}

func (s *set[T]) Update(object any) error { return s.Add(object) }

func (s *set[T]) Delete(object any) error {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	return s.change(func(items map[string]T) {
		name, _ := s.trim(object)
		delete(items, name)
	})
}

func (s *set[T]) Replace(objects []any, _ string) error {
	return s.change(func(items map[string]T) {
		clear(items)
		for _, object := range objects {
			name, item := s.trim(object)
			items[name] = item
		}
	})
}

func (s *set[T]) Resync() error { return nil }
