package v1alpha1

import "k8s.io/apimachinery/pkg/util/validation/field"

// Validate says what is wrong with the configuration: field, value, and what
// would be right.
func (c *GPUConfig) Validate() field.ErrorList {
	var errs field.ErrorList
	if mode := c.ComputeMode; mode != nil {
		switch *mode {
		case ComputeModeDefault, ComputeModeExclusiveProcess:
		default:
			errs = append(errs, field.NotSupported(field.NewPath("computeMode"), *mode,
				[]ComputeMode{ComputeModeDefault, ComputeModeExclusiveProcess}))
		}
	}
	return errs
}
