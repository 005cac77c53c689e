package admission

import (
	"context"
	"time"
)

// linger is how long a replica that is told to end goes on: so long the API server may not
// know yet that it leaves.
const linger = 3 * time.Second

// Linger returns a context that ends some moments after ctx. All that a replica does goes
// on until then, its leading too: what waited for the webhook alone would have the Lease,
// and no other replica could begin. The function that is returned ends it at once.
func Linger(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(linger, end) })
	return longer, func() {
		stop()
		end()
	}
}
