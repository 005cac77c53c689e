// Package controller runs what the cluster has once: the reconcilers, in a manager that
// leads, is watched and ends as one. Each reconciler has a package of its own below.
package controller
