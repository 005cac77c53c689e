// Package sleeps has sleeps for the test to find.
package sleeps

import "time"

// Nap sleeps twice.
func Nap() {
	time.Sleep(1) //archtest:sleep it is marked, so it may
	time.Sleep(1)
}
