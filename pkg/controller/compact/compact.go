// Package compact makes of ResourceSlices and ResourceClaims the little that the
// controller keeps in memory: what selectors of classes read, what devices take of
// their counters, and who has them. What is the same for many devices, on one node or
// on a thousand, is there once.
package compact

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxShared is how many values are remembered to be shared. Beyond that it begins anew:
// clusters with so much variety have little to share, and values that nobody has any
// more must not stay for ever.
const maxShared = 50_000

// shared has values of which equal ones are to be one.
type shared[T any] struct {
	mu     sync.Mutex
	values map[string]T
}

// of is the value that was first seen with that key, which says all of the value.
func (s *shared[T]) of(key string, value func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v
	}
	if s.values == nil || len(s.values) >= maxShared {
		s.values = map[string]T{}
	}
	v := value()
	s.values[key] = v
	return v
}

// identity is what is kept of an object's metadata.
func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion}
}
