package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionapi "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

func posted(ctx context.Context, size int64, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path, body)
	r.ContentLength = size
	return r
}

// What no API server sends is refused before memory is taken for it.
func TestTooMuch(t *testing.T) {
	h := &Handler{Checker: checker(t, "")}
	many := `{"request":{"object":{"spec":{"devices":{"requests":[` + strings.Repeat("{},", 1<<20) + `{}]}}}}}`
	for name, test := range map[string]struct {
		size int64
		body string
		code int
		want string
	}{
		"no length":       {-1, "{}", http.StatusLengthRequired, "Content-Length: is missing"},
		"too long":        {maxReview + 1, "", http.StatusRequestEntityTooLarge, "6553601 bytes"},
		"less than said":  {3, "{}", http.StatusBadRequest, "read the review"},
		"too many values": {int64(len(many)), many, http.StatusRequestEntityTooLarge, "want 96 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, posted(t.Context(), test.size, strings.NewReader(test.body)))
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("code %d: %s", w.Code, w.Body)
			}
		})
	}
	// None of them has kept its room.
	if !h.room.read.TryAcquire(maxRead) || !h.room.decoded.TryAcquire(maxDecoded) {
		t.Error("there is less room than before")
	}
}

// The largest object that an API server takes, and the one before it, are let through.
func TestLargest(t *testing.T) {
	object := apiruntime.RawExtension{Raw: []byte(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", maxObject-100) + `"}}}`)}
	r := &admissionapi.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: resourceapi.GroupName, Version: "v1", Kind: "DeviceClass"}, Object: object, OldObject: object,
	}
	if answer := post(t, &Handler{Checker: checker(t, "")}, r); !answer.Allowed {
		t.Errorf("%+v", answer)
	}
}

// When the room is taken, others wait a moment, and are let in when somebody leaves.
func TestFull(t *testing.T) {
	check := checker(t, "")
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Checker: check}
		large := func() *http.Request { return posted(t.Context(), maxReview, bytes.NewReader(make([]byte, maxReview))) }
		var leave []func()
		for range maxRead / maxReview {
			_, l, refused := h.room.take(large())
			if refused != nil {
				t.Fatalf("%+v", refused)
			}
			leave = append(leave, l)
		}
		code := func() int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, large())
			return w.Code
		}
		began := time.Now()
		if got := code(); got != http.StatusServiceUnavailable || time.Since(began) != patience {
			t.Errorf("code %d after %s", got, time.Since(began))
		}
		waiting := make(chan int, 1)
		go func() { waiting <- code() }()
		<-time.After(patience / 2)
		leave[0]()
		if got := <-waiting; got != http.StatusBadRequest { // it is no review
			t.Errorf("when one has left: code %d", got)
		}
	})
}

// decodedSize is no less than what a text takes, whatever it consists of.
func TestDecodedSize(t *testing.T) {
	inRequest := func(part string) []byte { return []byte(`{"request":{"uid":"1",` + part + `}}`) }
	inClaim := func(part string) []byte {
		return inRequest(`"kind":{"group":"resource.k8s.io","kind":"ResourceClaim"},"object":{` + part + `}`)
	}
	list := func(value string) string { return "[" + strings.Repeat(value+",", 20_000) + value + "]" }
	h := &Handler{Checker: checker(t, "")}
	for name, content := range map[string][]byte{
		"requests":      inClaim(`"spec":{"devices":{"requests":` + list(`{"exactly":{}}`) + `}}`),
		"empty ones":    inClaim(`"spec":{"devices":{"requests":` + list(`{}`) + `}}`),
		"subrequests":   inClaim(`"spec":{"devices":{"requests":[{"firstAvailable":` + list(`{}`) + `}]}}`),
		"configs":       inClaim(`"spec":{"devices":{"config":` + list(`{"opaque":{}}`) + `}}`),
		"managedFields": inClaim(`"metadata":{"managedFields":` + list(`{}`) + `}`),
		"status":        inClaim(`"status":{"devices":` + list(`{"networkData":{}}`) + `}`),
		"groups":        inRequest(`"userInfo":{"groups":` + list(`""`) + `}`),
		"a long string": inClaim(`"metadata":{"annotations":{"a":"` + strings.Repeat(`<`, 1<<20) + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, posted(t.Context(), int64(len(content)), bytes.NewReader(content)))
			runtime.ReadMemStats(&after)
			if w.Code != http.StatusOK {
				t.Fatalf("code %d: %s", w.Code, w.Body)
			}
			// All that was allocated, as if nothing had been collected meanwhile.
			if used, most := int64(after.TotalAlloc-before.TotalAlloc), int64(len(content))+decodedSize(content); used > most {
				t.Errorf("%d bytes take %d, more than %d", len(content), used, most)
			}
		})
	}
}
