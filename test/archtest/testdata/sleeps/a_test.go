package sleeps

import (
	"testing"
	"time"
)

func TestNap(*testing.T) {
	// A mark is no help in a test.
	time.Sleep(1) //archtest:sleep no
}
