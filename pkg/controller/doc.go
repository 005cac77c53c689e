// Package controller keeps what the cluster has for PartitionClasses.
package controller
