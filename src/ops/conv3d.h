/* conv3d.h: the convolution of volumes, for ops that have those of images too. */
#pragma once
#include "kernels/conv2d.h"
#include "runtime/kernel.h"

/* The kernel of Conv3D; its state begins with a Window of five dimensions, whose strides and dilations were checked. */
Error *conv3d_forward(KernelContext *k, Conv2dCache *cache) MUST_CHECK;
