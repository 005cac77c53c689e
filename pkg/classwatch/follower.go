package classwatch

import (
	"context"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// pauseLeast and pauseMost lie between two tries: where there is no such kind of
	// object, each node asks once a minute whether there is now.
	pauseLeast = time.Second
	pauseMost  = time.Minute
	// patience is how many tries may fail, in half a minute, before a node goes on
	// without what it cannot read.
	patience = 6
)

// items are what a follower fills in.
type items interface {
	cache.ReflectorStore
	known() bool
}

// follower keeps items as the API server has them.
type follower struct {
	what   string
	source cache.ListerWatcher
	object runtime.Object
	into   items
	said   string
	failed int // tries, since the last that succeeded
}

func (f *follower) run(ctx context.Context) {
	// Its own loop would ask again each half a minute, and log each time.
	reflector := cache.NewReflectorWithOptions(f.source, f.object, f.into, cache.ReflectorOptions{Name: "classwatch"})
	pause := pauseLeast
	for ctx.Err() == nil {
		begin := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil || time.Since(begin) > pauseMost { // it has worked
			pause, f.failed, f.said = pauseLeast, 0, ""
		}
		if err != nil {
			f.without(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.Jitter(pause, 0.2)):
		}
		if err != nil {
			pause = min(2*pause, pauseMost)
		}
	}
}

// without decides what is known where nothing can be read, and says so once.
func (f *follower) without(ctx context.Context, err error) {
	f.failed++
	message := "Cannot follow " + f.what + "; trying again"
	switch known := f.into.known(); {
	case apierrors.IsNotFound(err):
		// There is no such kind, or no such node: what was known is gone with it.
		message = "There are none of these: " + f.what + "; looking again from time to time"
		_ = f.into.Replace(nil, "")
	case known:
		// It stays as it was.
	case apierrors.IsForbidden(err), f.failed >= patience && !unreachable(err):
		message = "Cannot follow " + f.what + "; going on as if there were none, and trying again"
		_ = f.into.Replace(nil, "")
	}
	if said := message + err.Error(); said != f.said {
		f.said = said
		klog.FromContext(ctx).Info(message, "reason", err.Error())
	}
}

// unreachable says whether the API server cannot be asked at all: then nothing can be
// published either, and there is no hurry to know.
func unreachable(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
