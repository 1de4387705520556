//go:build !linux

package provider

import "github.com/byteexpress/byteexpress/uverbs"

// devicesOf says that only Linux has any.
func devicesOf(s *uverbs.System) ([]kernelDevice, error) {
	_, err := s.Devices()
	return nil, err
}
