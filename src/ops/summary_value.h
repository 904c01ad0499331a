/* summary_value.h: values added to a serialised tf.Summary, for ops that return one and ops that write one. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "tensor/tensor.h"

void summary_put_scalar(StrBuf *summary, Str tag, float v);
/* metadata: serialised SummaryMetadata; ptr NULL: none. */
void summary_put_tensor(StrBuf *summary, Str tag, Str node_name, const Tensor *t, Str metadata);
/* Of any real dtype; NaN and infinities are InvalidArgument, for `whose`. */
Error *summary_put_histogram(StrBuf *summary, Str tag, const Tensor *values, Str whose) MUST_CHECK;

/* Up to max_images of a batch [n, height, width, channels] as "TAG/image/i"; bad_color is for pixels that are not
 * finite. */
Error *summary_put_images(StrBuf *summary, Str tag, const Tensor *t, int64_t max_images,
                          const uint8_t bad_color[4]) MUST_CHECK;
/* Up to max_outputs of a batch [n, frames, channels] or [n, frames] as "TAG/audio/i", in WAV. */
Error *summary_put_sounds(StrBuf *summary, Str tag, const Tensor *t, int64_t max_outputs, float sample_rate) MUST_CHECK;
