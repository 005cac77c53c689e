package harness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Set names objects to watch: all of a resource in a namespace, or one by Name.
type Set struct {
	Client    rest.Interface
	Resource  string
	Namespace string
	Fields    fields.Set
}

// Wait watches a set of objects until done says so, and returns them as they were
// then. what is for the error: "Pod x to run".
func Wait[T runtime.Object](ctx context.Context, s Set, what string, done func([]T) (bool, error)) ([]T, error) {
	var store cache.Store
	var last []T
	check := func() (bool, error) {
		last = last[:0]
		for _, o := range store.List() {
			last = append(last, o.(T))
		}
		return done(last)
	}
	var kind T // a nil pointer that knows its type
	lw := cache.NewListWatchFromClient(s.Client, s.Resource, s.Namespace, s.Fields.AsSelector())
	_, err := watchtools.UntilWithSync(ctx, lw, reflect.New(reflect.TypeOf(kind).Elem()).Interface().(runtime.Object),
		func(synced cache.Store) (bool, error) {
			store = synced
			return check()
		},
		func(watch.Event) (bool, error) { return check() })
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return last, fmt.Errorf("waiting for %s: %w", what, err)
	}
	return last, nil
}

// WaitOne is Wait for one object; done gets the zero value where it is not there.
func WaitOne[T runtime.Object](ctx context.Context, s Set, name, what string, done func(T) (bool, error)) (T, error) {
	s.Fields = fields.Set{"metadata.name": name}
	one := func(all []T) T {
		var none T
		if len(all) == 0 {
			return none
		}
		return all[0]
	}
	all, err := Wait(ctx, s, what, func(all []T) (bool, error) { return done(one(all)) })
	return one(all), err
}

// Pass lets time pass, where the passing is the matter: an outage that lasts.
func Pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
