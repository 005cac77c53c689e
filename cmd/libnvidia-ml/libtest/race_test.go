//go:build race

package libtest

func init() { raceDetector = true }
