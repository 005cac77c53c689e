// Package integration tests the launcher with real clusters. See its tests.
package integration
