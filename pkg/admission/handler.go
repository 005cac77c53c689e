package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionapi "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Handler answers reviews of admission.k8s.io/v1.
type Handler struct {
	Checker *Checker
	// Metrics may be nil.
	Metrics *Metrics

	room room
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, leave, refused := h.room.take(r)
	if refused != nil {
		http.Error(w, refused.why, refused.code)
		return
	}
	defer leave()
	var review admissionapi.AdmissionReview
	if err := json.Unmarshal(content, &review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("no AdmissionReview of %s with a request (%v)", admissionapi.SchemeGroupVersion, err), http.StatusBadRequest)
		return
	}
	review.Response = h.review(r.Context(), review.Request)
	review.Response.UID = review.Request.UID
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		klog.FromContext(r.Context()).V(1).Info("The API server did not wait for the answer", "err", err)
	}
}

// review never fails: what cannot be read is let through, since prepare checks it, too.
func (h *Handler) review(ctx context.Context, r *admissionapi.AdmissionRequest) *admissionapi.AdmissionResponse {
	done := h.Metrics.time(r.Kind.Kind)
	findings, err := h.Checker.object(ctx, r)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Let through unseen", "kind", r.Kind.Kind, "namespace", r.Namespace, "name", r.Name)
		done(outcomeError)
		return &admissionapi.AdmissionResponse{Allowed: true}
	}
	response := &admissionapi.AdmissionResponse{Allowed: len(findings.Refused) == 0, Warnings: findings.Warnings}
	switch {
	case !response.Allowed:
		done(outcomeRefused)
		klog.FromContext(ctx).Info("Refused", "kind", r.Kind.Kind, "namespace", r.Namespace, "name", r.Name, "why", findings.Refused)
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: strings.Join(findings.Refused, "; "),
		}
	case len(response.Warnings) > 0:
		done(outcomeWarned)
	default:
		done(outcomeAllowed)
	}
	return response
}
