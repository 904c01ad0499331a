/* audio.c: DecodeWav, EncodeWav, AudioSpectrogram, Mfcc: sounds, their frequencies over time, and the features of speech. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/wav.h"
#include "kernels/fft.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef audio_ops[] = {
    {"DecodeWav", "contents: string -> audio: float, sample_rate: int32", "desired_channels: int = -1; desired_samples: int = -1", 0},
    {"EncodeWav", "audio: float, sample_rate: int32 -> contents: string", "", 0},
    {"AudioSpectrogram", "input: float -> spectrogram: float", "window_size: int; stride: int; magnitude_squared: bool = false", 0},
    {"Mfcc", "spectrogram: float, sample_rate: int32 -> output: float",
     "upper_frequency_limit: float = 4000.0; lower_frequency_limit: float = 20.0; filterbank_channel_count: int = 40; "
     "dct_coefficient_count: int = 13",
     0},
    {0},
};

static Error *scalar_rate(const Tensor *t, int32_t *out) {
    if (t->shape.rank != 0) return error_invalid("Input sample_rate should be a scalar tensor, got %s instead.", shape_text(&t->shape).text);
    *out = tensor_i32(t)[0];
    return NULL;
}

/* ---- WAV files ---- */

typedef struct WavState {
    int64_t channels, samples; /* wanted; -1: as many as there are */
} WavState;

static Error *decode_init(const Node *node, void *state) {
    WavState *s = state;
    Error *err = node_attr_int(node, "desired_channels", &s->channels);
    if (!err) err = node_attr_int(node, "desired_samples", &s->samples);
    return err;
}

static Error *run_decode(KernelContext *k) {
    const WavState *s = k->state;
    WavSound sound;
    if (k->in[0]->shape.rank != 0) return error_invalid("contents must be scalar, got shape %s", shape_text(&k->in[0]->shape).text);
    Error *err = wav_decode(tstring_str(tensor_str(k->in[0])), &sound);
    if (!err && s->channels < -1) err = error_invalid("desired_channels must be >= -1, got %lld", (long long)s->channels);
    if (!err && s->samples < -1) err = error_invalid("desired_samples must be >= -1, got %lld", (long long)s->samples);
    if (err) return err;
    Shape shape = shape_matrix(s->samples < 0 ? sound.frames : s->samples, s->channels < 0 ? sound.channels : s->channels);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    float *to = tensor_f32(out);
    for (int64_t f = 0; f < shape.dims[0]; f++)
        for (int64_t c = 0; c < shape.dims[1]; c++) {
            int64_t from = c < sound.channels ? c : sound.channels - 1; /* channels that are not there repeat the last */
            *to++ = f < sound.frames ? wav_sample(&sound, f * sound.channels + from) : 0;
        }
    kernel_set_output(k, 1, tensor_scalar_i32((int32_t)sound.rate));
    return NULL;
}

static Error *run_encode(KernelContext *k) {
    const Tensor *audio = k->in[0];
    int32_t rate = 0;
    if (audio->shape.rank != 2) return error_invalid("audio must be 2-dimensional%s", shape_text(&audio->shape).text);
    Error *err = scalar_rate(k->in[1], &rate);
    if (err) return err;
    int64_t frames = audio->shape.dims[0], channels = audio->shape.dims[1];
    if (audio->count >= INT32_MAX) return error_invalid("Cannot encode audio with >= max int32 elements");
    if (rate <= 0) return error_invalid("sample_rate must be in (0, 2^32), got: %llu", (unsigned long long)rate);
    if (channels < 1 || channels > UINT16_MAX) return error_invalid("num_channels must be in (0, 2^16), got: %lld", (long long)channels);
    if (audio->count > (INT64_C(0xffffffff) - 44) / 2) return error_invalid("Provided channels and frames cannot be encoded as a WAV.");
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (!out) return NULL;
    StrBuf file = {0};
    wav_encode(tensor_f32(audio), frames, channels, (uint32_t)rate, &file);
    size_t len = file.len;
    tstring_take(tensor_str(out), strbuf_detach(&file), len);
    return NULL;
}

/* ---- Spectrograms ---- */

typedef struct SpectrogramState {
    int64_t window, stride;
    bool squared;
} SpectrogramState;

static Error *spectrogram_init(const Node *node, void *state) {
    SpectrogramState *s = state;
    Error *err = node_attr_int(node, "window_size", &s->window);
    if (!err) err = node_attr_int(node, "stride", &s->stride);
    if (!err) err = node_attr_bool(node, "magnitude_squared", &s->squared);
    if (!err && (s->window <= 1 || s->window > INT32_MAX)) err = error_invalid("window_size must be > 1, got %lld", (long long)s->window);
    if (!err && (s->stride <= 0 || s->stride > INT32_MAX)) err = error_invalid("stride must be > 0, got %lld", (long long)s->stride);
    return err;
}

typedef struct SpectrogramJob {
    const SpectrogramState *s;
    const Tensor *in;
    Tensor *out; /* channels, windows, frequencies */
    FftPlan *plan;
    int64_t length; /* of a transform: a power of two */
    const double *weights;
    atomic_bool failed; /* no memory */
} SpectrogramJob;

/* Rows [begin, end) of the output: windows of one channel after another. */
static void spectrogram_rows(void *arg, int64_t begin, int64_t end) {
    SpectrogramJob *job = arg;
    int64_t windows = job->out->shape.dims[1], width = job->out->shape.dims[2], channels = job->in->shape.dims[1];
    double _Complex *work = try_alloc((size_t)(job->length + fft_plan_scratch(job->plan)) * sizeof *work);
    if (!work) {
        atomic_store(&job->failed, true);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t channel = row / windows, start = row % windows * job->s->stride;
        for (int64_t i = 0; i < job->length; i++)
            work[i] = i < job->s->window ? tensor_f32(job->in)[(start + i) * channels + channel] * job->weights[i] : 0;
        fft_run(job->plan, false, work, work + job->length);
        for (int64_t i = 0; i < width; i++) {
            float power = (float)(creal(work[i]) * creal(work[i]) + cimag(work[i]) * cimag(work[i]));
            tensor_f32(job->out)[row * width + i] = job->s->squared ? power : sqrtf(power);
        }
    }
    free(work);
}

static Error *run_spectrogram(KernelContext *k) {
    const SpectrogramState *s = k->state;
    const Tensor *in = k->in[0];
    if (in->shape.rank != 2) return error_invalid("input must be 2-dimensional%s", shape_text(&in->shape).text);
    int64_t length = 2, windows = in->shape.dims[0] < s->window ? 0 : 1 + (in->shape.dims[0] - s->window) / s->stride;
    while (length < s->window) length *= 2;
    Shape shape = {3, {in->shape.dims[1], windows, length / 2 + 1}};
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    double *weights = try_alloc((size_t)s->window * sizeof *weights);
    SpectrogramJob job = {.s = s, .in = in, .out = out, .plan = weights ? fft_plan_new(length) : NULL, .length = length, .weights = weights};
    for (int64_t i = 0; job.plan && i < s->window; i++) weights[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)s->window);
    if (job.plan) threadpool_parallel_for(k->pool, shape.dims[0] * windows, 16, spectrogram_rows, &job);
    bool failed = !job.plan || atomic_load(&job.failed);
    fft_plan_free(job.plan);
    free(weights);
    return failed ? error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for transforms of length %lld", (long long)length) : NULL;
}

/* ---- Mel-frequency cepstral coefficients ---- */

typedef struct MfccState {
    float low, high; /* hertz */
    int64_t bands, coefficients;
} MfccState;

enum { MAX_BANDS = 1 << 16 };

static Error *mfcc_init(const Node *node, void *state) {
    MfccState *s = state;
    Error *err = node_attr_float(node, "lower_frequency_limit", &s->low);
    if (!err) err = node_attr_float(node, "upper_frequency_limit", &s->high);
    if (!err) err = node_attr_int(node, "filterbank_channel_count", &s->bands);
    if (!err) err = node_attr_int(node, "dct_coefficient_count", &s->coefficients);
    return err;
}

/* A frequency on the mel scale, on which equal steps sound alike. */
static double mel(double hertz) {
    return 1127.0 * log1p(hertz / 700.0);
}

/* Triangles over the frequencies: one falls from the middle of a band to that of the next while the next one's rises. */
typedef struct MelBank {
    int64_t first, last; /* frequencies that count */
    double *falling;     /* what part of a frequency belongs to the band below it; the rest to the one above */
    int64_t *band;       /* below; -1: there is none */
} MelBank;

static void mel_bank_clear(MelBank *m) {
    free(m->falling);
    free(m->band);
}

/* `width` frequencies up to half the rate; false: not enough memory. */
static bool mel_bank_init(MelBank *m, const MfccState *s, int64_t width, double rate) {
    const double low = mel(s->low), step = (mel(s->high) - low) / (double)(s->bands + 1), hertz = 0.5 * rate / (double)(width - 1);
    const double first = 1.5 + s->low / hertz, last = s->high / hertz;
    m->first = first < (double)width ? (int64_t)first : width;
    m->last = last < (double)width ? (int64_t)last : width;
    m->falling = try_alloc((size_t)width * sizeof *m->falling);
    m->band = try_alloc((size_t)width * sizeof *m->band);
    if (!m->falling || !m->band) return false;
    for (int64_t i = m->first, band = 0; i <= m->last && i < width; i++) {
        const double at = mel((double)i * hertz);
        while (band < s->bands && low + step * (double)(band + 1) < at) band++;
        const double below = band ? low + step * (double)band : low, above = low + step * (double)(band + 1);
        m->band[i] = band - 1;
        m->falling[i] = (above - at) / (above - below);
    }
    return true;
}

static void mel_bands(const MelBank *m, const MfccState *s, const float *power, double *out) {
    for (int64_t b = 0; b < s->bands; b++) out[b] = 0;
    for (int64_t i = m->first; i <= m->last; i++) {
        double magnitude = sqrt((double)power[i]), falling = magnitude * m->falling[i];
        int64_t band = m->band[i];
        if (band >= 0) out[band] += falling;
        if (band + 1 < s->bands) out[band + 1] += magnitude - falling;
    }
    for (int64_t b = 0; b < s->bands; b++) out[b] = log(out[b] < 1e-12 ? 1e-12 : out[b]);
}

static void fill_cosines(const MfccState *s, double *cosines) {
    const double norm = sqrt(2.0 / (double)s->bands), step = M_PI / (double)s->bands;
    for (int64_t c = 0; c < s->coefficients; c++)
        for (int64_t b = 0; b < s->bands; b++) cosines[c * s->bands + b] = norm * cos((double)c * step * ((double)b + 0.5));
}

static Error *check_mfcc(const MfccState *s, int64_t width, int32_t rate) {
    if (s->bands >= 1 && s->bands <= MAX_BANDS && s->coefficients >= 1 && s->coefficients <= s->bands && width >= 2 && rate > 0 && s->low >= 0 && s->high > s->low) return NULL;
    return error_invalid("Mfcc initialization failed for channel count %lld, sample rate %d and filterbank_channel_count %lld", (long long)width, rate,
                         (long long)s->bands);
}

static Error *run_mfcc(KernelContext *k) {
    const MfccState *s = k->state;
    const Tensor *in = k->in[0];
    int32_t rate = 0;
    if (in->shape.rank != 3) return error_invalid("spectrogram must be 3-dimensional%s", shape_text(&in->shape).text);
    int64_t width = in->shape.dims[2], rows = in->shape.dims[0] * in->shape.dims[1];
    Error *err = scalar_rate(k->in[1], &rate);
    if (!err) err = check_mfcc(s, width, rate);
    if (err) return err;
    Shape shape = {3, {in->shape.dims[0], in->shape.dims[1], s->coefficients}};
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    MelBank bank = {0};
    double *work = try_alloc((size_t)(s->bands * (s->coefficients + 1)) * sizeof *work), *cosines = work ? work + s->bands : NULL;
    bool ok = work && mel_bank_init(&bank, s, width, rate);
    if (ok) fill_cosines(s, cosines);
    for (int64_t r = 0; ok && r < rows; r++) {
        bool reaches = bank.last < width; /* else the spectrum ends below the upper limit, and nothing is computed */
        if (reaches) mel_bands(&bank, s, tensor_f32(in) + r * width, work);
        for (int64_t c = 0; c < s->coefficients; c++) {
            double sum = 0;
            for (int64_t b = 0; reaches && b < s->bands; b++) sum += cosines[c * s->bands + b] * work[b];
            tensor_f32(out)[r * s->coefficients + c] = (float)sum;
        }
    }
    mel_bank_clear(&bank);
    free(work);
    return ok ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for %lld bands", (long long)s->bands);
}

const KernelDef audio_cpu[] = {
    {"DecodeWav", .run = run_decode, .state_size = sizeof(WavState), .init = decode_init},
    {"EncodeWav", .run = run_encode},
    {"AudioSpectrogram", .run = run_spectrogram, .state_size = sizeof(SpectrogramState), .init = spectrogram_init, .flags = KERNEL_EXPENSIVE},
    {"Mfcc", .run = run_mfcc, .state_size = sizeof(MfccState), .init = mfcc_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
