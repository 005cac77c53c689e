package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Two agents write records side by side, which go and come back, while others list them:
// each finds what was written last, whoever wrote it.
func TestTwoAgentsSeeTheLatest(t *testing.T) {
	root := t.TempDir()
	if syscall.Mount("none", root, "ramfs", 0, "") == nil { // whose times are those of any file before Linux 6.13
		defer func() {
			if err := syscall.Unmount(root, 0); err != nil {
				t.Error(err)
			}
		}()
	}
	var both []*Journal
	for range 2 {
		j, err := Open(filepath.Join(root, "claims"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, j)
	}
	done := make(chan struct{})
	var listing, writing sync.WaitGroup
	for _, j := range both {
		listing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				records, err := j.List()
				for _, r := range records {
					err = errors.Join(err, r.Err)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if rand.N(20) == 0 {
					if err := j.Sweep(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 4 {
		writing.Go(func() {
			uid := fmt.Sprint("uid-", i)
			for n := range 500 {
				writer := both[rand.N(2)]
				var wrote error
				boot, deleted := fmt.Sprint(n%7), rand.N(3) == 0
				if deleted {
					wrote = writer.Delete(uid)
				} else {
					wrote = writer.Put(&Entry{Claim: Claim{Namespace: "default", Name: uid, UID: uid}, BootID: boot})
				}
				if wrote != nil {
					t.Error(wrote)
					return
				}
				for _, reader := range both {
					switch got, err := reader.Get(uid); {
					case deleted && !errors.Is(err, failure.Absent):
						t.Errorf("%s after its removal: %+v, %v", uid, got, err)
					case !deleted && (err != nil || got.BootID != boot || got.Claim.UID != uid):
						t.Errorf("%s with %s: %+v, %v", uid, boot, got, err)
					}
				}
			}
		})
	}
	writing.Wait()
	close(done)
	listing.Wait()
}
