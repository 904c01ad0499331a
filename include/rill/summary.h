/* summary.h: what a training shows: scalars, histograms and images, in event files that TensorBoard reads. */
#ifndef RILL_SUMMARY_H_
#define RILL_SUMMARY_H_

#include "rill/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ops that make a serialised Summary, collected in the graph. */
RILL_API RillTensor rill_summary_scalar(RillGraph *g, const char *tag, RillTensor value);
RILL_API RillTensor rill_summary_histogram(RillGraph *g, const char *tag, RillTensor values);
RILL_API RillTensor rill_summary_image(RillGraph *g, const char *tag, RillTensor images, int max_images); /* [batch, height, width, channels] */
/* All collected so far in one string; a tensor without operation when there are none. */
RILL_API RillTensor rill_summary_merge(RillGraph *g);

typedef struct RillWriter RillWriter;
/* A new event file in the directory, which is made when it is missing. NULL on error. */
RILL_API RillWriter *rill_writer_open(const char *directory, TF_Status *status);
RILL_API void rill_writer_close(RillWriter *w); /* NULL is allowed */
/* Thread-safe. Errors show in the next flush. */
RILL_API void rill_writer_summary(RillWriter *w, const TF_Tensor *summary, int64_t step); /* a value of rill_summary_merge */
RILL_API void rill_writer_scalar(RillWriter *w, const char *tag, double value, int64_t step);
RILL_API void rill_writer_graph(RillWriter *w, RillGraph *g);
RILL_API TF_Code rill_writer_flush(RillWriter *w, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
