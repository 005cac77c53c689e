package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Anybody who reaches the port can send reviews, and the container has a limit of memory
// (the chart's controller.resources), of which the caches have their part. What reviews
// may take is bounded here.
const (
	// maxObject is the most that an API server reads of a request, in bytes
	// (MaxRequestBodyBytes in k8s.io/apiserver/pkg/server/config.go). What it has stored
	// came to it that way.
	maxObject = 3 << 20
	// maxReview is the most that is read of a review, in bytes: an update has two
	// objects, and the rest is about the user who asks.
	maxReview = 2*maxObject + 256<<10
	// maxRead are the bytes of all reviews that are read at a time.
	maxRead = 24 << 20
	// leastRead is what a review counts there at least, in bytes, so that many small ones
	// are bounded, too: to a few hundred.
	leastRead = 64 << 10
	// maxDecoded are the bytes that all reviews may take that are decoded and checked at a
	// time.
	maxDecoded = 96 << 20
	// Decoded, a byte of text is in memory as many times as here, with what Go has not
	// collected yet, and a value of JSON, were it only {}, takes so many bytes.
	perByte, perValue = 4, 1280
	// patience is how long a review waits for others. API servers wait as long again, by
	// the chart's webhook.timeoutSeconds.
	patience = time.Second
)

// room that reviews share. The zero value is ready.
type room struct {
	once          sync.Once
	read, decoded *semaphore.Weighted
}

func (r *room) init() {
	r.read, r.decoded = semaphore.NewWeighted(maxRead), semaphore.NewWeighted(maxDecoded)
}

// refusal is why a review is not looked at, and the code of HTTP. The API server goes on
// by the webhook's failurePolicy then.
type refusal struct {
	code int
	why  string
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code: code, why: fmt.Sprintf(format, args...)}
}

// take reads a review where there is room for it, which is the caller's until it calls
// leave.
func (r *room) take(request *http.Request) (content []byte, leave func(), refused *refusal) {
	r.once.Do(r.init)
	size := request.ContentLength
	switch {
	case size < 0:
		return nil, nil, refuse(http.StatusLengthRequired, "Content-Length: is missing: say how long the review is, as API servers do")
	case size > maxReview:
		return nil, nil, refuse(http.StatusRequestEntityTooLarge, "Content-Length: %d bytes are more than a review has: want %d at most", size, maxReview)
	}
	ctx, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	read := max(size, leastRead)
	if r.read.Acquire(ctx, read) != nil {
		return nil, nil, full()
	}
	// The two are taken in this order by all, so nobody waits for who waits for them.
	leaveRead := func() { r.read.Release(read) }
	content = make([]byte, size)
	if _, err := io.ReadFull(request.Body, content); err != nil {
		leaveRead()
		return nil, nil, refuse(http.StatusBadRequest, "read the review: %v", err)
	}
	decoded := decodedSize(content)
	if decoded > maxDecoded {
		leaveRead()
		return nil, nil, refuse(http.StatusRequestEntityTooLarge, "the review takes %d MiB decoded: want %d at most", decoded>>20, maxDecoded>>20)
	}
	waiting, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	if r.decoded.Acquire(waiting, decoded) != nil {
		leaveRead()
		return nil, nil, full()
	}
	return content, func() { r.decoded.Release(decoded); leaveRead() }, nil
}

func full() *refusal {
	return refuse(http.StatusServiceUnavailable, "too many reviews at a time: there was no room for another within %s", patience)
}

// decodedSize is more than a text of JSON takes when it is decoded, in bytes. Each value
// but the first comes after a comma or an opening bracket.
func decodedSize(content []byte) int64 {
	values := 1
	for _, before := range []string{",", "[", "{"} {
		values += bytes.Count(content, []byte(before))
	}
	return int64(perByte*len(content) + perValue*values)
}
